//! Tests of the recognition of calls in a text. See [`super`].

use super::*;
use forms::forms;

mod forms;

fn is_call_of_a_schema(text: &str) -> bool {
    let tool = |name: &str, properties: &[&str]| {
        let fields: serde_json::Map<_, _> =
            properties.iter().map(|name| ((*name).to_owned(), serde_json::json!({ "type": "string" }))).collect();
        ToolSchema {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object", "properties": fields, "required": properties }),
        }
    };
    is_in(text, &[tool("write_file", &["path", "content"]), tool("list_dir", &[])])
}

#[test]
fn call_as_text_is_recognised_in_each_form_of_a_model() {
    let missed: Vec<_> = forms().into_iter().filter(|(_, text)| !is_call_of_a_schema(text)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn text_about_tools_is_no_call() {
    let taken: Vec<_> = [
        r##"You could call `write_file` with a path and content."##,
        r##"For example, a call looks like this:

```json
{"name": "write_file", "arguments": {"path":"x"}}
```

That is the form."##,
        r##"{"name": "Bob", "arguments": {"a":1}}"##,
        r##"{"name":"list","age":3}"##,
        r##"```python
def write_file(path, content):
    open(path,"w").write(content)
```"##,
        r##"```python
write_file("a.txt", "x")
print("done")
```"##,
        r##"<function name="x"/>"##,
        r##"The tag <tool_call> begins a call in Hermes."##,
        r##"```sh
list_dir() { ls; }
```"##,
        r##"[1, 2, 3]"##,
        r##"write_file is a tool."##,
        "Hermes models write <tool_call>{\"name\": \"write_file\"}</tool_call> in their text.",
        "You can call it like this: write_file(path=\"a.txt\")",
        "write_file: {\"description\": \"Writes a file\"}",
        "The file list_dir.json has:\n\n{\"name\": \"list_dir\", \"version\": 1}",
        "{\"name\": \"write_file\"}",
        "Action: write the file, then read it.",
        "{\"name\": \"write_file\", \"arguments\": {}}\n\nThis JSON was the call.",
        "tool: write_file\nIt writes a file: the path is its first argument.",
        "The template has:\n\n```xml\n<tool name=\"write_file\">\n</tool>\n```",
        "write_file (see below) takes a path.",
        "<write_file> is the element of Cline, and it ends with </write_file>",
    ]
    .into_iter()
    .filter(|text| is_call_of_a_schema(text))
    .collect();
    assert!(taken.is_empty(), "{taken:#?}");
}

fn is_found(text: &str) -> bool {
    let tool = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: String::new(),
        parameters: serde_json::json!({ "type": "object" }),
    };
    is_in(text, &[tool("read_file"), tool("write_file")])
}

#[test]
fn call_written_as_text_is_recognised_in_its_usual_forms() {
    for text in [
        r#"{"name": "read_file", "arguments": {"path": "a"}}"#,
        r#"{"name": "read_file", "parameters": {}}"#,
        r#"{"type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}}"#,
        r#"{"tool": "read_file", "args": {"path": "a"}}"#,
        r#"{"action": "read_file", "action_input": {"path": "a"}}"#,
        r#"{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}"#,
        r#"[{"name": "read_file", "arguments": {"path": "a"}}, {"name": "write_file", "arguments": {}}]"#,
        "{\"name\": \"read_file\", \"arguments\": {}}\n{\"name\": \"write_file\", \"arguments\": {}}",
        r#"{"read_file": {"path": "a"}}"#,
        "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        "I read it now:\n\n```\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        "I read it now.\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\"",
        "Sure.\n<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        "<function=read_file>{\"path\": \"a\"}</function>",
        "<function_calls>\n<invoke name=\"read_file\"></invoke>\n</function_calls>",
        "```xml\n<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n```",
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>",
        "<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{}<|call|>",
        "[TOOL_CALLS][{\"name\": \"read_file\", \"arguments\": {}}]",
        "[TOOL_CALLS]read_file{\"path\": \"a\"}",
        "functools[{\"name\": \"read_file\", \"arguments\": {}}]",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file",
        "<|python_tag|>read_file.call(path=\"a\")",
        "[read_file(path=\"a\"), write_file(path=\"b\")]",
        "read_file(path=\"a (b)\")",
        "```tool_code\nread_file(path=\"a\")\n```",
    ] {
        assert!(is_found(text), "{text}");
    }
}

#[test]
fn answer_that_explains_json_or_tags_is_no_call() {
    for text in [
        "",
        "It is done.",
        r#"{"name": "Ada", "arguments": {"born": 1815}}"#,
        r#"{"name": "read_file", "version": 2, "arguments": {}}"#,
        r#"{"name": "read_file"}"#,
        r#"["read_file", "write_file"]"#,
        "{\"name\": \"read_file\", \"arguments\": {}}\nis the form of a call.",
        "This is an example:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        "A call:\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\nThe name is that of the tool.",
        "Two forms:\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\nor\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```",
        "Your file has this:\n```json\n{\"name\": \"config\", \"arguments\": {}}\n```",
        "Some models write `<tool_call>{\"name\": \"read_file\"}</tool_call>` as text.",
        "<tool_call> is the tag that some models write.",
        "```xml\n<tool_call>{\"name\": \"read_file\"}</tool_call>\n```\nis the form of Hermes.",
        "read_file(path) reads a file (up to its end)",
        "read_file and write_file are my tools.",
        "[read_file](https://example.com) has more.",
        "[1, 2, 3]",
    ] {
        assert!(!is_found(text), "{text}");
    }
}
