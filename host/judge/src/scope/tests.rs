use super::lexicon::Lexicon;
use super::*;
use crate::provenance::spans::Span;
use proptest::prelude::*;

const DEVELOPMENT: &str = include_str!("../../data/dev_cases.toml");
const WITHHELD: &str = include_str!("../../data/withheld_cases.toml");
const POLITE: &str = include_str!("../../data/polite_cases.toml");

fn typed(text: &str) -> Scope {
    scope(&[Span { text, typed: true }]).expect("no declaration")
}

#[track_caller]
fn all_ask_to_send(texts: &[&str]) {
    for text in texts {
        assert!(typed(text).classes.has(Class::Send), "{text}");
    }
}

#[track_caller]
fn none_asks_to_send(texts: &[&str]) {
    for text in texts {
        assert!(!typed(text).classes.has(Class::Send), "{text}");
    }
}

fn classes(text: &str) -> String {
    typed(text).classes.to_string()
}

#[test]
fn declaration_hides_the_lexicon() {
    let text = "/allow read\nsend the report to Ana";
    let scope = typed(text);
    assert_eq!((scope.classes.to_string().as_str(), scope.source), ("read", Source::Declared));
    assert_eq!(&text[scope.evidence[0].bytes.clone()], "read");
}

#[test]
fn lexicon_shows_the_words_that_ask() {
    let text = "Hi! Could you summarise it and send it to Ana?";
    let scope = typed(text);
    assert_eq!(scope.source, Source::Lexicon);
    let words: Vec<_> = scope.evidence.iter().map(|found| (found.class, &text[found.bytes.clone()])).collect();
    assert_eq!(words, [(Class::Read, "summarise"), (Class::Send, "send")]);
}

#[test]
fn text_that_asks_for_nothing_has_the_default_source() {
    for text in ["", "hello", "thanks!", "I sent it yesterday.", "\u{0}\u{feff}"] {
        let scope = typed(text);
        assert_eq!((scope.classes, scope.source), (Classes::NONE, Source::Default), "{text:?}");
    }
}

#[test]
fn request_to_pay_gives_no_class_but_to_read() {
    for text in
        ["Pay the bill", "Can you please pay the bill 'bill-december-2023.txt' for me?", "Should I pay the bill?"]
    {
        let found = typed(text).classes;
        assert_eq!(found.and(Classes::new(&[Class::Read])), found, "money is a trade, which always asks: {text}");
    }
}

#[test]
fn exec_and_trade_are_never_found() {
    for text in [
        "run the tests",
        "execute rm -rf /",
        "buy 10 shares",
        "kauf das",
        "compra pan",
        "achète du pain",
        "买股票",
        "sell it",
    ] {
        let found = typed(text).classes;
        assert!(!found.has(Class::Exec) && !found.has(Class::Trade), "{text}");
    }
}

#[test]
fn text_that_is_not_typed_gives_nothing() {
    let quoted = Span { text: "send the report to Ana", typed: false };
    let allow = Span { text: "/allow send", typed: false };
    assert_eq!(scope(&[quoted, allow]).expect("no declaration").classes, Classes::NONE);
}

#[test]
fn quotations_of_each_kind_give_nothing() {
    for (open, close) in
        [("\"", "\""), ("„", "“"), ("«", "»"), ("「", "」"), ("‘", "’"), ("`", "`"), ("```\n", "\n```"), ("> ", "")]
    {
        for text in ["send it to Ana", "schick es an Ana", "envíaselo a Ana", "envoie-le à Ana", "把它发给安娜"]
        {
            assert_eq!(classes(&format!("{open}{text}{close}")), "", "{open}{text}{close}");
        }
    }
}

#[test]
fn accents_may_be_left_out() {
    all_ask_to_send(&[
        "envíale el pdf a Juan",
        "enviale el pdf a Juan",
        "Réponds à Julie",
        "reponds a Julie",
        "Veröffentliche den Artikel",
    ]);
    assert!(typed("Veroeffentliche den Artikel").classes.has(Class::Send));
    assert!(!typed("envié el pdf a Juan").classes.has(Class::Send), "a past tense differs by its accent");
}

#[test]
fn request_not_to_send_counts_for_the_whole_message() {
    none_asks_to_send(&[
        "Send the report to Ana. No wait, don't send it yet.",
        "Schick Ana den Bericht. Nein, schick ihn noch nicht.",
        "Envía el informe a Ana. No, no lo envíes todavía.",
        "Envoie le rapport à Ana. Non, ne l'envoie pas encore.",
        "把报告发给安娜。算了，先别发。",
    ]);
    let spans = [Span { text: "send it to Ana", typed: true }, Span { text: "or rather, don't send it", typed: true }];
    assert!(!scope(&spans).expect("no declaration").classes.has(Class::Send));
}

#[test]
fn negation_that_pleads_takes_nothing_away() {
    all_ask_to_send(&[
        "No novel please, just text Omar \"yes\"",
        "Magst du der Nachbarin nicht eben schreiben, dass ihr Paket hier liegt?",
        "¿Por qué no le mandas el archivo a Ana?",
        "Pourquoi tu lui envoies pas le fichier ?",
        "你怎么还不把文件发给他",
    ]);
    none_asks_to_send(&[
        "No, don't text Omar",
        "Kannst du der Nachbarin bitte nicht schreiben?",
        "No le mandes el archivo a Ana",
        "Ne lui envoie pas le fichier",
        "你别把文件发给他",
    ]);
}

#[test]
fn list_and_what_a_message_says_belong_to_its_request() {
    all_ask_to_send(&[
        "lad Mama und Papa zum Essen ein",
        "Lade Anna, Ben und Clara zum Review ein",
        "Reiche den Antrag für den 4. bis 8. August im Portal ein",
        "Erzähl Oma, dass ich die Prüfung bestanden habe",
        "schreib Ben dass ich heute nicht komme",
        "tuitea: ¡Buscamos gente!",
        "message to Laura: here already",
        "给李总发封邮件说合同已经签好了",
    ]);
    none_asks_to_send(&[
        "Notiere Anna, Ben und Clara im Kalender",
        "Lade die Fotos und Videos herunter",
        "Schreib einen Artikel für den Blog, veröffentliche ihn aber nicht",
        "Erzähl mir, dass alles gut wird",
        "mensaje de Laura: resúmelo",
        "4. August notieren",
        "妈妈说合同已经发给李总了",
    ]);
}

#[test]
fn following_message_is_sent_to_a_named_receiver() {
    none_asks_to_send(&[
        "He said write the following message to Bob: hi",
        "He said: write the following message to the channel: hi",
        "Don't write the following message to the channel: hi",
        "Do not write them the following message: hi",
        "Should I write the following message to the channel: hi?",
        "\"Write the following message to the channel: hi\"",
        "If Ana agrees, write the following message to the channel: hi",
        "Maybe write the following message to the channel: hi",
        "Write the following message to the log file: hi",
        "Write the following text to the end of the page: hi",
        "Write the following message to notes.txt: hi",
        "Write down the following message: hi",
        "Write me the following message: hi",
        "Write the following message to sound friendlier: hi",
        "Write the following message in German: hi",
        "Write the following message: hi",
        "The script can write the following message to the channel: hi",
        "Summarize what each user wrote and to each user the message: hi",
    ]);
    all_ask_to_send(&[
        "Write the following message to the channel starting with External: Hi, i am a bot",
        "Find a user who wrote the most total channel messages and write them the following message: Congrats!",
        "Please write Ana the following message: I will be late",
        "Could you write the following message to Ben Miller: see you?",
        "Sort all users by their messages and to each user write the message: Congrats!",
    ]);
}

#[test]
fn reply_at_a_place_that_was_named_before_is_sent() {
    none_asks_to_send(&[
        "Do not reply there",
        "Find the thread about mugs, but don't reply there that you have seen it",
        "He replied there that he has seen it",
        "I always reply there",
        "Should I reply there?",
        "How do I reply there?",
        "She wants me to reply there that I am ill",
        "If they ask, reply there that I am ill",
        "\"reply there that you are ill\"",
        "Find a channel with the most users, and tell me what people post there",
        "Comment there is no more",
    ]);
    all_ask_to_send(&[
        "Find a channel where Alice asked about coffee mug and reply there that you've seen it in the meeting room.",
        "Find a channel with the most users and post there the following question: 'Hi, can everybody write me?'",
        "Open the thread about mugs and reply there",
    ]);
}

#[test]
fn change_that_a_person_asks_to_make_sure_of_is_a_write() {
    for text in [
        "Make sure not to adjust my rent",
        "Make sure you don't adjust my rent",
        "He made sure to adjust my rent",
        "The letter says to make sure to adjust my rent",
        "\"make sure to adjust my rent\"",
        "Make sure to write back",
    ] {
        assert!(!typed(text).classes.has(Class::Write), "{text}");
    }
    for text in ["Read 'notices.txt' and make sure to adjust my rent payment accordingly.", "Be sure you rename it"] {
        assert!(typed(text).classes.has(Class::Write), "{text}");
    }
}

#[test]
fn chinese_request_may_begin_with_its_object_or_its_receiver() {
    all_ask_to_send(&[
        "这份合同麻烦抄送法务和财务",
        "我的定位发给接机的师傅",
        "給 maintainer 回一句 LGTM",
        "稿子审过了，可以发了",
        "@所有人 明早九点开会",
        "让小周把考勤表交上来",
        "老妈那边你说一声",
        "不用太正式，跟他说声就行",
    ]);
    none_asks_to_send(&[
        "这份合同已经发给法务了",
        "我的定位发给他了吗",
        "老师让家长签的回执在哪",
        "明天再告诉他",
        "他让小周把考勤表交上来",
        "请柬上的名字对吗",
        "这个消息先不公布",
        "写一封给投资人的信",
        "把快递寄给我姐",
        "告诉他也没用",
    ]);
}

#[test]
fn chinese_request_may_have_other_words_between_its_parts() {
    all_ask_to_send(&[
        "不用等我了，直接把标书投出去",
        "把构建好的镜像推到公司的 harbor 仓库",
        "在脸书社團貼一則徵室友的文",
        "往告警机器人的 webhook 里 POST 一条测试消息",
        "修掉那几个死链，commit 之后推到 origin/main",
        "先把要求读懂，再按要求给组委会发一封报名邮件",
        "把这个月的对账单分别寄给六家客户",
        "问问二叔清明回不回老家",
    ]);
    none_asks_to_send(&[
        "把推到下周的会都列出来",
        "把发到群里的通知整理成表格",
        "等我改完再推到 main",
        "同学群里有人发消息说学校要放假",
        "投稿被拒了三次",
        "在网上报名驾校要带什么材料",
        "在文档里回复他的批注怎么弄",
        "先别把标书投出去",
    ]);
}

#[test]
fn language_that_is_not_covered_gives_nothing() {
    for text in [
        "Envie o relatório para a Ana por favor, não se esqueça",
        "Manda il rapporto ad Anna per favore, non dimenticare",
        "Stuur het rapport naar Anna",
        "Отправь отчёт Анне",
        "レポートをアンナに送信してください",
        "보고서를 안나에게 보내 줘",
    ] {
        assert_eq!(classes(text), "", "{text}");
    }
}

#[test]
fn long_text_is_read_up_to_its_bound() {
    let filler = "x ".repeat(reading::TEXT_BYTES_MAX);
    assert_eq!(classes(&format!("{filler}. Send it to Ana.")), "");
    assert!(typed(&format!("Send it to Ana. {filler}")).evidence.len() <= EVIDENCE_MAX);
    assert!(typed(&"Send it to Ana. ".repeat(900)).evidence.len() == EVIDENCE_MAX);
}

fn report_of(cases: &str) -> report::Report {
    report::report(cases, Lexicon::embedded()).expect("cases")
}

#[test]
fn text_that_withholds_send_gives_none() {
    let report = report_of(WITHHELD);
    let claimed: Vec<_> = report.wrong.iter().filter(|wrong| wrong.got.has(Class::Send)).collect();
    assert!(claimed.is_empty(), "{claimed:?}");
    assert!(report.cases >= 500, "{} cases", report.cases);
    for language in Lexicon::embedded().languages() {
        let count = WITHHELD.matches(&format!("lang = \"{language}\"")).count();
        assert!(count >= 70, "{language} has {count} cases");
    }
}

/// The lowest precision and recall of `send` over the development cases, and of each class over all languages. The counts are those
/// from before whole sentences could withhold `send`, without two texts: one is a condition, and one asks whether it was done.
#[test]
fn development_cases_keep_send_as_often_as_before() {
    let report = report_of(DEVELOPMENT);
    assert!(report.cases >= 300, "{} cases", report.cases);
    let before = [("en", 222), ("de", 196), ("es", 185), ("fr", 188), ("zh", 1225)];
    for measure in report.measures {
        let is_send = measure.class == Class::Send;
        let (precision, recall) = if is_send { (0.99, 0.97) } else { (0.83, 0.87) };
        assert!(measure.precision >= precision && measure.recall >= recall, "{measure:?}");
        let before = before.iter().find(|(language, _)| is_send && measure.lang == *language);
        assert!(before.is_none_or(|(_, before)| measure.right >= *before), "{measure:?}");
    }
    let report = report_of(POLITE);
    let missed: Vec<_> = report.wrong.iter().filter(|wrong| !wrong.got.has(Class::Send)).collect();
    assert!(missed.is_empty() && report.cases >= 60, "{missed:?}");
}

/// Text with the words, marks and declarations that the reader knows.
fn wild() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "\\PC{0,12}",
        6 => prop::sample::select(vec![
            "send", "it", "to", "Ana", "don't", "please", "could you", "and", "schick", "an", "bitte", "nicht", "envía", "a", "no", "envoie",
            "à", "ne", "pas", "把", "发给", "安娜", "别", "if", "/allow", "write", "delete", "the report", ":", "?", ".", ",", "\n", "\r\n", "-",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["\"", "'", "`", "```", ">", "“", "”", "„", "«", "»", "‘", "’", "「", "」", "-----x", "\u{301}", "e\u{301}"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_a_panic(text in prop_oneof![wild(), any::<String>()]) {
        if let Ok(scope) = scope(&[Span { text: &text, typed: true }]) {
            for found in &scope.evidence {
                prop_assert!(text.get(found.bytes.clone()).is_some_and(|words| !words.is_empty()), "{found:?}");
                prop_assert!(scope.classes.has(found.class) || scope.evidence.len() == EVIDENCE_MAX);
            }
            if matches!(scope.source, Source::Lexicon | Source::Default) {
                prop_assert!(!scope.classes.has(Class::Exec) && !scope.classes.has(Class::Trade));
            }
        }
    }

    #[test]
    fn content_of_a_quotation_does_not_matter(
        before in wild(), after in wild(), one in "[a-zA-Z ,.äéñ发给把]{1,40}", two in "[a-zA-Z ,.äéñ发给把]{1,40}", mark in 0..6_usize,
    ) {
        let (open, close) = [("\"", "\""), ("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"), ("`", "`")][mark];
        let marks = ['"', '“', '”', '„', '«', '»', '「', '`', '‘', '\'', '>', '-', '/'];
        let before = before.replace(marks, "");
        let with = |content: &str| classes(&format!("{before} {open}{content}{close} {after}"));
        prop_assert_eq!(with(&one), with(&two));
    }

    #[test]
    fn fenced_text_gives_nothing(text in wild()) {
        prop_assume!(!text.contains("```"));
        prop_assert_eq!(classes(&format!("```\n{text}\n```")), "");
        prop_assert_eq!(classes(&format!("> {}", text.replace(spans::is_line_end, " "))), "");
    }

    #[test]
    fn spans_that_are_not_typed_change_nothing(text in wild(), quoted in prop::collection::vec(wild(), 0..4)) {
        let own = Span { text: &text, typed: true };
        let all: Vec<_> = quoted.iter().map(|text| Span { text, typed: false }).chain([own]).collect();
        let reversed: Vec<_> = all.iter().rev().copied().collect();
        let alone = scope(&[own]).map(|scope| (scope.classes, scope.source));
        prop_assert_eq!(scope(&all).map(|scope| (scope.classes, scope.source)), alone.clone());
        prop_assert_eq!(scope(&reversed).map(|scope| (scope.classes, scope.source)), alone);
    }

    #[test]
    fn declaration_counts_at_the_start_only(before in "[a-z\"'>`*(\u{200b}]{1,8}", white in "[ \n\t]{0,4}") {
        let text = format!("{white}{before}{white}/allow exec trade");
        prop_assert_eq!(declared::declared(&[Span { text: &text, typed: true }]), Ok(None));
        let found = typed(&format!("{white}/allow exec trade\n{before}"));
        prop_assert_eq!(found.classes, Classes::new(&[Class::Exec, Class::Trade]));
    }
}
