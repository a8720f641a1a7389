#!/usr/bin/perl
# Verifies an exported IronClaw ledger without IronClaw: nothing here was made from its sources, and nothing is needed
# but perl and the modules that come with it. It never opens a home and knows no secret.
#
#   ironctl audit export > ledger.ndjson        (or: cat HOME/ledger/chain-*.ndjson, for the archives alone)
#   perl verify-ledger.pl ledger.ndjson [--heads DIR] [--key HEX]
#   perl verify-ledger.pl --vectors ledger-vectors.json
#
# Exit code 0: everything fits. 1: it does not, and a sentence names the first bad entry. 2: wrong command line.
#
# What is checked: each entry's hash, SHA-256 of "previous|seq|TYPE|data"; numbers without a gap; that `data` and
# `canonical` are the same bytes; that each chain continues from the file before it; the Ed25519 signature (RFC 8032) of
# the head behind each chain and of each head in DIR, and that the entries are those that were signed. With --key, that
# the ledger names the key that you wrote down. Heads that an owner accepted as those of another history are not compared, and a line
# names each such entry: whoever has the host's keys can write one. What nobody can check: entries that no head outside was signed over, if
# somebody has the host's keys.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex sha512);
use Math::BigInt try => 'GMP';    # any will do; with GMP a signature takes a tenth of the time

my ($file, %option);
while (defined(my $word = shift @ARGV)) {
    if ($word =~ /^--(heads|key|vectors)$/) { $option{$1} = shift @ARGV // usage() }
    elsif ($word =~ /^--/ || defined $file) { usage() }
    else                                    { $file = $word }
}
sub usage { print STDERR "usage: verify-ledger.pl FILE [--heads DIR] [--key HEX]\n       verify-ledger.pl --vectors FILE\n"; exit 2 }

sub bad { my ($seq, $class, $why) = @_; print defined $seq ? "bad seq $seq" : 'bad', ": $why ($class)\n"; exit 1 }

# ---- the chain -------------------------------------------------------------------------------------------------------

my $KIND = qr/^(?:GENESIS|BOOT|CLAIM|VERIFY|RETRACT|META)$/;

sub begin { my ($first) = @_; return { first => $first, next => $first, prev => '0' x 64 } }

# Takes the next entry; returns why not.
sub accept_entry {
    my ($chain, $seq, $type, $data, $hash) = @_;
    my $next = $chain->{next};
    return "expected sequence number $next, found $seq" if $seq != $next;
    return "unknown entry type \"$type\""                  if $type !~ $KIND;
    return "$type is not allowed at $seq"               if ($type eq 'GENESIS') != ($seq == $chain->{first});
    return 'the hash does not follow from the entry and the one before it'
        if sha256_hex("$chain->{prev}|$seq|$type|$data") ne $hash;
    @$chain{qw(next prev)} = ($seq + 1, $hash);
    return;
}

# A line of an export: seq, type, data, hash; nothing if it is none.
sub entry {
    my ($line) = @_;
    my ($seq, $type, $data, $hash, $canonical) = $line =~
        /^\{"seq":(0|[1-9]\d*),"type":"([^"]*)","data":(.*),"hash":"([^"]{64})","canonical":"([^"\\]*+(?:\\["\\][^"\\]*+)*+)"\}$/s
        or return;
    $canonical =~ s/\\(["\\])/$1/g;    # canonical JSON holds nothing else that a text in JSON escapes
    return $canonical eq $data ? ($seq, $type, $data, $hash) : ();
}

# ---- heads -----------------------------------------------------------------------------------------------------------

sub head {
    my ($line) = @_;
    my %head;
    @head{qw(domain first hash key ledger seq signature)} = $line =~
        /^\{"domain":"([^"\\]*)","first":(\d+),"hash":"([0-9a-f]{64})","key":"([0-9a-f]{64})","ledger":"([0-9a-f]{64})","seq":(\d+),"signature":"([0-9a-f]{128})","time":"[^"\\]*"\}$/
        or return;
    ($head{signed} = $line) =~ s/,"signature":"[0-9a-f]{128}"//;
    return \%head;
}

my %seen;    # the head behind an archive is usually kept outside as well

sub authentic {
    my ($head) = @_;
    return $seen{"$head->{signed} $head->{signature}"} //= $head->{domain} eq 'ironclaw/ledger-head/1'
        && ed25519_verify(map({ pack 'H*', $head->{$_} } qw(key signature)), $head->{signed});
}

# ---- Ed25519, RFC 8032, section 5.1.7: [S]B = R + [k]A, without the cofactor --------------------------------------------

my ($P, $L, $D, $I, $B);

sub constants {
    $P = Math::BigInt->new(2)->bpow(255)->bsub(19);
    $L = Math::BigInt->new(2)->bpow(252)->badd('27742317777372353535851937790883648493');
    $D = (-121665 * Math::BigInt->new(121666)->bmodinv($P)) % $P;
    $I = Math::BigInt->new(2)->bmodpow(($P - 1) / 4, $P);
    $B = point(pack 'H*', '58' . '66' x 31) or die 'the base point';
}

sub number { return Math::BigInt->from_hex(unpack 'H*', reverse $_[0]) }    # little-endian bytes

# A point (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z from its 32 bytes; nothing if they are none.
sub point {
    my $y = number($_[0]);
    my $sign = $y >> 255;
    $y -= $sign << 255;
    return if $y >= $P;
    my $yy = $y * $y % $P;
    my $square = ($yy - 1) * ($D * $yy + 1)->bmodinv($P) % $P;
    my $x = $square->copy->bmodpow(($P + 3) / 8, $P);
    $x = $x * $I % $P if ($x * $x - $square) % $P != 0;
    return if ($x * $x - $square) % $P != 0 || ($x == 0 && $sign == 1);
    $x = $P - $x if $x % 2 != $sign;
    return [$x, $y, Math::BigInt->bone, $x * $y % $P];
}

sub sum {
    my ($p, $q) = @_;
    my $a = ($p->[1] - $p->[0]) * ($q->[1] - $q->[0]) % $P;
    my $b = ($p->[1] + $p->[0]) * ($q->[1] + $q->[0]) % $P;
    my $c = 2 * $p->[3] * $q->[3] % $P * $D % $P;
    my $d = 2 * $p->[2] * $q->[2] % $P;
    my ($e, $f, $g, $h) = ($b - $a, $d - $c, $d + $c, $b + $a);
    return [$e * $f % $P, $g * $h % $P, $f * $g % $P, $e * $h % $P];
}

sub ed25519_verify {
    my ($key, $signature, $message) = @_;
    constants() if !defined $B;
    my $a = point($key) or return 0;
    my $s = number(substr $signature, 32);
    return 0 if $s >= $L;
    my $k = number(sha512(substr($signature, 0, 32) . $key . $message)) % $L;
    # [S]B + [k](-A) in one walk over the bits of both, and then R is what it comes to.
    my $minus = [($P - $a->[0]) % $P, $a->[1], $a->[2], ($P - $a->[3]) % $P];
    my @add = (undef, $B, $minus, sum($B, $minus));
    my @bits = map { scalar reverse sprintf '%0256s', substr $_->as_bin, 2 } $s, $k;
    my $r = [Math::BigInt->bzero, Math::BigInt->bone, Math::BigInt->bone, Math::BigInt->bzero];
    for my $bit (reverse 0 .. 255) {
        $r = sum($r, $r);
        my $which = substr($bits[0], $bit, 1) + 2 * substr $bits[1], $bit, 1;
        $r = sum($r, $add[$which]) if $which;
    }
    my $inverse = $r->[2]->copy->bmodinv($P);
    my ($x, $y) = map { $_ * $inverse % $P } @$r[0, 1];
    my $bytes = reverse pack 'H*', sprintf '%064s', substr +($y + (($x % 2) << 255))->as_hex, 2;
    return $bytes eq substr $signature, 0, 32;
}

# ---- canonical JSON (RFC 8785), for the vectors -------------------------------------------------------------------------

sub canonical {
    my ($text) = @_;
    if ($$text =~ /\G\s*\{\s*/gc) {
        my %member;
        until ($$text =~ /\G\s*\}/gc) {
            $$text =~ /\G\s*,\s*/gc or die 'a comma' if %member;
            my $key = text($text);
            die "duplicate key $key" if exists $member{$key};
            $$text =~ /\G\s*:/gc or die 'a colon';
            $member{$key} = canonical($text);
        }
        return '{' . join(',', map { quoted($_) . ":$member{$_}" } sort { utf16($a) cmp utf16($b) } keys %member) . '}';
    }
    if ($$text =~ /\G\s*\[\s*/gc) {
        my @element;
        until ($$text =~ /\G\s*\]/gc) {
            $$text =~ /\G\s*,/gc or die 'a comma' if @element;
            push @element, canonical($text);
        }
        return '[' . join(',', @element) . ']';
    }
    return $1 if $$text =~ /\G\s*(true|false|null)/gc;
    return ecmascript($1) if $$text =~ /\G\s*(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)/gc;
    $$text =~ /\G\s*/gc;
    return quoted(text($text));
}

my %ESCAPE = ("\b" => 'b', "\t" => 't', "\n" => 'n', "\f" => 'f', "\r" => 'r', '"' => '"', '\\' => '\\');
my %PLAIN = ((map { $ESCAPE{$_} => $_ } keys %ESCAPE), '/' => '/');

sub text {
    my ($text) = @_;
    $$text =~ /\G"((?:[^"\\]|\\.)*)"/gc or die 'a text';
    my $plain = $1;
    $plain =~ s{\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)|\\u(....)|\\(.)}
        {defined $1 ? chr 0x10000 + ((hex($1) & 0x3ff) << 10) + (hex($2) & 0x3ff) : defined $3 ? chr hex $3 : $PLAIN{$4}}ge;
    return $plain;
}

sub quoted {
    my ($plain) = @_;
    $plain =~ s/(["\\\b\t\n\f\r])/\\$ESCAPE{$1}/g;
    $plain =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;
    return qq("$plain");
}

sub utf16 {
    return join '', map { $_ < 0x10000 ? pack 'n', $_ : pack 'n2', 0xd800 + ($_ - 0x10000 >> 10), 0xdc00 + ($_ & 0x3ff) } unpack 'W*', $_[0];
}

# A number as ECMAScript writes it: the fewest digits that read back as the same double.
sub ecmascript {
    my $number = $_[0] + 0;
    return '0' if $number == 0;
    my $shortest;
    for my $digits (0 .. 16) {
        $shortest = sprintf '%.*e', $digits, $number;
        last if $shortest == $number;
    }
    my ($sign, $digits, $rest, $exponent) = $shortest =~ /^(-?)(\d)\.?(\d*)e([-+]\d+)$/ or die $shortest;
    ($digits .= $rest) =~ s/0+$//;
    my ($length, $point) = (length $digits, $exponent + 1);
    return $sign . $digits . '0' x ($point - $length) if $length <= $point && $point <= 21;
    return $sign . substr($digits, 0, $point) . '.' . substr $digits, $point if 0 < $point && $point <= 21;
    return "${sign}0." . '0' x -$point . $digits if -6 < $point && $point <= 0;
    my $fraction = $length > 1 ? '.' . substr $digits, 1 : '';
    return sprintf '%s%s%se%+d', $sign, substr($digits, 0, 1), $fraction, $point - 1;
}

# ---- what is asked for -----------------------------------------------------------------------------------------------

sub vectors {
    require JSON::PP;
    open my $in, '<:raw', $_[0] or die "$_[0]: $!\n";
    my $vectors = JSON::PP->new->utf8->decode(do { local $/; <$in> });
    my %chain;
    for my $vector (@$vectors) {
        my $name = $vector->{name};
        my $canonical = canonical(\(my $given = $vector->{given}));
        $canonical eq $vector->{canonical} or do { print "bad vector: $name: canonical bytes\n"; exit 1 };
        my %before = defined $vector->{after} ? %{ $chain{ $vector->{after} } } : %{ begin($vector->{first} // 0) };
        utf8::encode(my $hashed = "$before{prev}|$vector->{seq}|$vector->{type}|$canonical");
        sha256_hex($hashed) eq $vector->{hash} or do { print "bad vector: $name: hash\n"; exit 1 };
        utf8::encode(my $stored = $vector->{stored} // $canonical);
        my $why = accept_entry(\%before, @$vector{qw(seq type)}, $stored, $vector->{hash});
        my $verdict = defined $why ? $before{next} : 'fits';
        $verdict eq ($vector->{refused_at} // 'fits') or do { print "bad vector: $name: $verdict\n"; exit 1 };
        $chain{$name} = \%before;
    }
    # RFC 8032, section 7.1, tests 1 to 3; and each of them with one bit changed.
    for (['d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', '', 'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b'],
        ['3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c', '72', '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00'],
        ['fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025', 'af82', '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a'])
    {
        my ($key, $message, $signature) = map { pack 'H*', $_ } @$_;
        my $changed = $signature ^ ("\0" x 40 . "\1");
        ed25519_verify($key, $signature, $message) && !ed25519_verify($key, $changed, $message) && !ed25519_verify($key, $signature, "$message.")
            or do { print "bad vector: Ed25519\n"; exit 1 };
    }
    print 'ok ', scalar @$vectors, " vectors\n";
}

sub verify {
    my ($file, $directory, $pin) = @_;
    my @kept;
    if (defined $directory) {
        opendir my $in, $directory or die "$directory: $!\n";
        for my $name (sort grep { /^[^.].*\.json$/ } readdir $in) {
            # Reading a pipe would wait for ever.
            if (!-f "$directory/$name") { push @kept, [$name]; next }
            open my $one, '<:raw', "$directory/$name" or die "$directory/$name: $!\n";
            read $one, my $line, 4096;
            chomp $line;
            push @kept, [$name, head($line)];
        }
    }
    my %wanted = map { $_->[1]{seq} => 1 } grep { $_->[1] } @kept;
    my $in = \*STDIN;
    if ($file ne '-') { open $in, '<', $file or die "$file: $!\n" }
    binmode $in;

    my ($ledger, $last, $chains, $started, %found, @keys, %accepted, @breaks);
    my ($next, $chain, $digest, $genesis) = (0);
    while (defined(my $line = <$in>)) {
        my $open = defined $chain;
        $chain //= begin($next);
        $digest //= Digest::SHA->new(256);
        $digest->add($line);
        bad($chain->{next}, 'truncated', 'the last line is torn') if $line !~ s/\n\z//;
        if (my ($seq, $type, $data, $hash) = entry($line)) {
            if (!$open && $type eq 'GENESIS') {
                bad($next, 'replayed', "expected sequence number $next, found the chain that begins at $seq once more") if $seq < $next;
                $genesis = $data;
            }
            my $why = accept_entry($chain, $seq, $type, $data, $hash);
            bad($chain->{next}, 'broken', $why) if defined $why;
            $ledger //= $hash;
            $started ||= $type eq 'BOOT';
            $found{$seq} = $hash if $wanted{$seq};
            # Within a text every quote has a backslash before it, so these are members and nothing quoted.
            if ($type eq 'GENESIS' || ($type eq 'META' && $data =~ /[{,]"what":"ledger\.key_made"/)) {
                push @keys, $1 if $data =~ /[{,]"key":"([0-9a-f]{64})"/;
            }
            # An owner says that heads know another history, as after a restore: these are not compared, and the verdict says so.
            elsif ($type eq 'META' && $data =~ /[{,]"what":"ledger\.break_accepted"/) {
                my ($by) = $data =~ /[{,]"by":"([^"\\]*)"/;
                my ($from) = $data =~ /[{,]"from":(\d+)/;
                my ($heads) = $data =~ /[{,]"heads":\[([^]]*)\]/;
                my ($reason) = $data =~ /[{,]"reason":("(?:[^"\\]|\\.)*")/;
                $accepted{$_} = 1 for ($heads // '') =~ /"(\d+:[0-9a-f]{64})"/g;
                push @breaks, [$seq, $from // 0, $by // '', $reason // '""'];
            }
        }
        elsif (my $head = head($line)) {
            my ($first, $end) = ($chain->{first}, $chain->{next} - 1);
            bad($first, 'broken', 'there is no entry, not even a genesis') if $end < $first;
            my ($archive, $hash, $before) = $genesis =~ /[{,]"continues_from":\{"archive":"([0-9a-f]{64})","hash":"([0-9a-f]{64})","seq":(\d+)\}/;
            if (defined $last) {
                bad($first, 'broken', 'the chain does not say which one it continues from') if !defined $archive;
                bad($first, 'broken', 'the chain continues from another entry than the last one before it')
                    if $before + 1 != $first || $hash ne $last->{hash};
                bad($first, 'broken', 'the lines of the chain before it are not those that it continues from') if $archive ne $last->{digest};
                bad($first, 'broken', 'the chain belongs to another ledger') if $genesis !~ /[{,]"ledger":"\Q$ledger\E"/;
            }
            elsif (defined $archive) { bad($first, 'broken', 'the first chain says that it continues from another') }
            bad($end, 'rewritten', "the head behind it was not signed by this ledger's key") if !authentic($head) || !grep { $_ eq $head->{key} } @keys;
            bad(0, 'rewritten', 'the head behind it was signed over another first entry') if $head->{ledger} ne $ledger;
            bad($end + 1, 'truncated', "the head behind it was signed at $head->{seq}, and the entries end at $end") if $head->{seq} > $end;
            bad($end, 'rewritten', 'the head behind it was signed over another entry')
                if $head->{seq} != $end || $head->{hash} ne $chain->{prev} || $head->{first} != $first;
            $last = { hash => $chain->{prev}, digest => $digest->hexdigest };
            ($next, $chain, $digest) = ($end + 1, undef, undef);
            $chains++;
        }
        else { bad($chain->{next}, 'broken', 'the line is not an entry as it is exported') }
    }
    bad($chain->{next}, 'truncated', 'the chain ends without a signed head') if defined $chain;
    bad(0, 'missing', 'there is no entry, not even a genesis') if !$chains;
    bad(0, 'rewritten', "the ledger does not name the key $pin") if defined $pin && !grep { $_ eq $pin } @keys;
    my ($own, $foreign, $agreed, $differing, $beyond) = (0, 0);
    for (@kept) {
        my ($name, $head) = @$_;
        bad(undef, 'head', "$name is no head") if !$head;
        bad(undef, 'head', "the signature of $name is not that of its key") if !authentic($head);
        my $known = grep { $_ eq $head->{key} } @keys;
        if ($head->{ledger} ne $ledger) {
            bad(0, 'rewritten', "$name was signed with this ledger's key over another first entry") if $known;
            $foreign++;
            next;
        }
        bad(undef, 'head', "$name was signed with a key that this ledger does not name") if !$known;
        my $seq = $head->{seq};
        next if $accepted{"$seq:$head->{hash}"};
        $own++;
        if    (!defined $found{$seq})           { $beyond = $seq if !defined $beyond || $seq < $beyond }
        elsif ($found{$seq} eq $head->{hash})   { $agreed = $seq if !defined $agreed || $seq > $agreed }
        elsif (!defined $differing || $seq < $differing) { $differing = $seq }
    }
    if (defined $differing) {
        bad($differing, 'forked', "the head signed at $differing is of another history than the one signed at $agreed") if defined $agreed && $agreed >= $differing;
        my $since = defined $agreed ? ", and nothing is known of those after $agreed" : '';
        bad($differing, 'rewritten', "another entry was signed here$since");
    }
    bad($next, 'truncated', "a head was signed at $beyond, and the entries end at " . ($next - 1)) if defined $beyond;
    bad(0, 'rewritten', "none of the $foreign heads is of this ledger: it is another one, or was rewritten from its first entry") if !$own && $foreign && $started && !@breaks;
    print "ok $next entries\n   chains $chains, outside heads $own\n   ledger $ledger\n";
    print "   key    $keys[-1]\n" if @keys;
    printf "   accepted at %s: heads and archives know another history from entry %s on, by %s: %s\n", @$_ for @breaks;
    print "   note: $foreign heads of other ledgers were left out\n" if $foreign;
}

if    (defined $option{vectors}) { defined $file ? usage() : vectors($option{vectors}) }
elsif (defined $file)            { verify($file, @option{qw(heads key)}) }
else                             { usage() }
