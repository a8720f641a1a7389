//! The tokens of a typed text: stretches between white space, without the marks around them.
//!
//! Never splits an address, a number or a path: `. , ' + @ / : = & # ~ - _ %` and all other marks inside of a token join it. Groups of
//! digits between spaces are one number where they look like one, and an account with spaces is one token.

use crate::provenance::spans::is_line_end;
use std::ops::Range;

/// Marks before a word that do not belong to it.
const OPENING: [char; 22] = [
    '(', '[', '{', '<', '"', '“', '„', '‟', '”', '«', '»', '‹', '›', '‘', '’', '‚', '「', '『', '《', '（', '【', '＂',
];
/// Marks before a word that may belong to an address.
const OPENING_WORD: [char; 12] = ['\'', '`', '*', '¿', '¡', '$', '€', '£', '¥', '₹', '＇', '…'];
/// Marks after a word that do not belong to it.
const CLOSING: [char; 34] = [
    '.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>', '…', '“', '”', '«', '»', '‹', '›', '‘', '’', '」',
    '』', '》', '。', '，', '、', '；', '：', '！', '？', '）', '】', '＂',
];
/// Marks after a word that never end an address.
const CLOSING_WORD: [char; 6] = ['*', '`', '€', '£', '¥', '₹'];
/// Marks between words of a text without spaces. Between Latin letters or digits they join: "20，000" is one number.
const BETWEEN: [char; 14] = ['，', '。', '、', '；', '：', '！', '？', '（', '）', '《', '》', '「', '」', '｡'];

/// Digits of a group after the first one in a number with groups, such as 20 000.
const GROUP_DIGITS: usize = 3;
/// Digits of the groups of a number of a card.
const CARD_DIGITS: usize = 4;
/// Characters of the shortest and of the longest account in the form of ISO 13616, and those of its head.
const ACCOUNT_CHARACTERS: Range<usize> = 15..35;
const ACCOUNT_HEAD: usize = 4;
/// Digits in a word of a title from which on it is rather an account or a number.
const TITLE_DIGITS_MAX: usize = 5;
/// Endings of names of files that are no top-level domains.
const FILE_ENDINGS: [&str; 22] = [
    "pdf", "txt", "csv", "json", "doc", "docx", "odt", "rtf", "xls", "xlsx", "ods", "ppt", "pptx", "png", "jpg",
    "jpeg", "gif", "webp", "svg", "xml", "html", "toml",
];

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its range of bytes with the marks around it.
    pub all: Range<usize>,
    /// Its range of bytes without them.
    pub core: Range<usize>,
}

impl Token {
    /// Returns the URL that the token is, or has as the target of a Markdown link.
    pub fn url<'a>(&self, text: &'a str) -> Option<&'a str> {
        let core = &text[self.core.clone()];
        let linked = core.find("](").map(|at| core[at + 2..].trim_end_matches(CLOSING));
        let url = linked.unwrap_or(core);
        let scheme: String = url.chars().take("https://".len()).collect::<String>().to_ascii_lowercase();
        (scheme.starts_with("https://") || scheme.starts_with("http://")).then_some(url)
    }

    /// Returns the token without white space if it is an account.
    pub fn account(&self, text: &str) -> Option<String> {
        let plain: String = text[self.core.clone()].split_whitespace().collect();
        is_account(&plain).then_some(plain)
    }
}

/// Returns the tokens of a text in order.
pub fn tokens(text: &str) -> Vec<Token> {
    let words = words(text);
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let count = joined(text, &words[at..]);
        let all = words[at].start..words[at + count - 1].end;
        at += count;
        tokens.extend(addresses(text, &all).unwrap_or_else(|| vec![Token { core: core(text, &all), all }]));
    }
    tokens
}

/// Returns the stretches between white space, and between the marks of texts without spaces.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let (mut begin, mut before) = (0, ' ');
    for (at, next) in text.char_indices() {
        let after = at + next.len_utf8();
        let is_between = BETWEEN.contains(&next)
            && !(is_joined_by_marks(before) && text[after..].chars().next().is_some_and(is_joined_by_marks));
        if next.is_whitespace() {
            words.extend((begin < at).then_some(begin..at));
            begin = after;
        } else if is_between {
            words.extend((begin < after).then_some(begin..after));
            begin = after;
        }
        before = next;
    }
    words.extend((begin < text.len()).then_some(begin..text.len()));
    words
}

/// Returns whether marks between two such characters join them: Latin letters, and digits of any script.
fn is_joined_by_marks(next: char) -> bool {
    next.is_alphanumeric()
        && !matches!(next, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns the token without the marks around it.
fn core(text: &str, all: &Range<usize>) -> Range<usize> {
    let word = &text[all.clone()];
    let is_address = word.contains('@');
    let opens = |next: char| OPENING.contains(&next) || !is_address && OPENING_WORD.contains(&next);
    let inner = word.trim_start_matches(opens);
    let begin = all.end - inner.len();
    let open = inner.matches('(').count();
    let (mut closed, mut closings) = (inner, inner.matches(')').count());
    while let Some(last) = closed.chars().next_back() {
        let closes = CLOSING.contains(&last) || !is_address && CLOSING_WORD.contains(&last);
        // The bracket of "https://en.example/A_(b)" belongs to it.
        if !closes || last == ')' && open >= closings {
            break;
        }
        closings -= usize::from(last == ')');
        closed = &closed[..closed.len() - last.len_utf8()];
    }
    begin..begin + closed.len()
}

/// Returns the addresses of a word that has nothing else: `Ana<a@b.org>`, `mailto:a@b.org`, `a@b.org;c@d.org`.
fn addresses(text: &str, all: &Range<usize>) -> Option<Vec<Token>> {
    let core = core(text, all);
    let word = &text[core.clone()];
    if !word.contains('@') {
        return None;
    }
    let place = |part: &str| {
        let begin = part.as_ptr() as usize - text.as_ptr() as usize;
        begin..begin + part.len()
    };
    let token = |part: &str| Token { all: place(part), core: place(part) };
    let name = word.split_once('<').filter(|(name, _)| name.chars().all(char::is_alphabetic));
    if let Some((_, address)) = name.filter(|(_, address)| is_address(address)) {
        return Some(vec![token(address)]);
    }
    let scheme = word.get(.."mailto:".len()).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
    if let Some(address) = scheme.map(|scheme| &word[scheme.len()..]).filter(|address| is_address(address)) {
        return Some(vec![token(address)]);
    }
    let parts: Vec<&str> = word.split([',', ';']).collect();
    (parts.len() > 1 && parts.iter().all(|part| is_address(part))).then(|| parts.into_iter().map(token).collect())
}

/// Returns whether a text is one whole mail address, of letters, digits and the marks that most addresses have.
pub fn is_address(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else { return false };
    let is_name = !name.is_empty() && name.chars().all(|next| next.is_alphanumeric() || "._+-'".contains(next));
    let is_host = host.contains('.') && host.chars().all(|next| next.is_alphanumeric() || ".-".contains(next));
    is_name && name.starts_with(char::is_alphanumeric) && is_host && host.ends_with(char::is_alphanumeric)
}

/// Returns the number of words that make the first token: more than one for a number or an account with spaces.
fn joined(text: &str, words: &[Range<usize>]) -> usize {
    let account = joined_account(text, words);
    if account > 1 {
        return account;
    }
    let Some(number) = Number::begun(&text[words[0].clone()]) else { return 1 };
    let mut count = 1;
    while words.get(count).is_some_and(|next| number.continues(text, &words[count - 1], next, count)) {
        count += 1;
    }
    count
}

/// The first word of a number that may have spaces.
struct Number {
    digits: usize,
    /// True if it begins like the number of a phone.
    is_dialled: bool,
}

impl Number {
    /// Returns the number that a word begins; `None` if it ends or begins none.
    fn begun(word: &str) -> Option<Self> {
        let digits = word.chars().filter(|next| next.is_numeric()).count();
        let is_prefix = word == "+" || word.starts_with('(') && word.ends_with(')') && digits > 0;
        let is_number = word.ends_with(char::is_numeric) && !word.contains(char::is_alphabetic);
        (is_prefix || is_number).then(|| Self { digits, is_dialled: word.starts_with(['+', '0', '(']) })
    }

    /// Returns whether a word is the next group of the number, which has `count` words up to `last`.
    fn continues(&self, text: &str, last: &Range<usize>, next: &Range<usize>, count: usize) -> bool {
        let gap = &text[last.end..next.start];
        let group = text[next.clone()].trim_end_matches(CLOSING).trim_end_matches(CLOSING_WORD);
        let digits = group.chars().take_while(|next| next.is_numeric()).count();
        let is_plain = digits > 0 && group.chars().all(|next| next.is_numeric() || ".,-/()".contains(next));
        let is_bracket =
            group.starts_with('(') && group.contains(char::is_numeric) && !group.contains(char::is_alphabetic);
        let ends = gap.is_empty() || gap.contains(is_line_end) || text[last.clone()].ends_with([',', ';', ':']);
        let is_card = self.digits == CARD_DIGITS && digits == CARD_DIGITS;
        let is_grouped = digits == GROUP_DIGITS && self.digits <= GROUP_DIGITS;
        (is_plain || is_bracket) && !ends && (count > 1 || gap != " " || self.is_dialled || is_card || is_grouped)
    }
}

/// Returns the number of words of the account that they begin with, or 1.
fn joined_account(text: &str, words: &[Range<usize>]) -> usize {
    let mut plain = String::new();
    let mut longest = 1;
    for (at, word) in words.iter().enumerate().take(ACCOUNT_CHARACTERS.end / 2) {
        let is_near = at == 0
            || text[words[at - 1].end..word.start].chars().all(|next| next.is_whitespace() && !is_line_end(next));
        let core = core(text, word);
        let own = &text[core.clone()];
        if !is_near || !own.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
            break;
        }
        plain.push_str(own);
        if is_account(&plain) {
            longest = at + 1;
        }
        // A mark after the group ends the account.
        if core.end < word.end {
            break;
        }
    }
    longest
}

/// Returns whether a text has the form of an international account number.
fn is_account(plain: &str) -> bool {
    let bytes = plain.as_bytes();
    let has_head = bytes.len() > ACCOUNT_HEAD
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..ACCOUNT_HEAD].iter().all(u8::is_ascii_digit);
    let is_rest = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    has_head
        && ACCOUNT_CHARACTERS.contains(&bytes.len())
        && bytes[ACCOUNT_HEAD..].iter().all(is_rest)
        && bytes[ACCOUNT_HEAD..].iter().filter(|byte| byte.is_ascii_digit()).count() >= 8
}

/// Returns whether words of a title are a name: nothing in them is an address, a URL, an account or a number.
pub fn is_name(words: &str) -> bool {
    let tokens = tokens(words);
    let cores =
        || tokens.iter().map(|token| &words[token.core.clone()]).filter(|word| word.contains(char::is_alphanumeric));
    let digits = |word: &str| word.chars().filter(|next| next.is_numeric()).count();
    let is_plain = |word: &str| {
        let is_host = word.rsplit_once('.').is_some_and(|(before, last)| {
            let is_domain = last.chars().count() > 1 && last.chars().all(char::is_alphabetic);
            is_domain
                && before.ends_with(char::is_alphanumeric)
                && !FILE_ENDINGS.contains(&last.to_lowercase().as_str())
        });
        !word.contains(['@', '/', '\\', '＠', '：'])
            && !word.contains("://")
            && !is_host
            && digits(word) < TITLE_DIGITS_MAX
    };
    cores().all(is_plain) && cores().any(|word| digits(word) == 0 || is_file(word))
}

/// Returns whether a word is the name of a file by its ending.
pub fn is_file(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, ending)| FILE_ENDINGS.contains(&ending.to_lowercase().as_str()))
}
