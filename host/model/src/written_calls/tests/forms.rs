//! Calls as text, in the forms of models.

/// Calls in the forms of models and templates.
pub(super) fn forms() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            "hermes",
            r##"<tool_call>
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
</tool_call>"##,
        ),
        (
            "hermes-open",
            r##"<tool_call>
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}"##,
        ),
        (
            "hermes-inline",
            r##"Sure. <tool_call>{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}</tool_call>"##,
        ),
        (
            "hermes-close-only",
            r##"{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
</tool_call>"##,
        ),
        (
            "hermes-single-quote",
            r##"<tool_call>
{'name': 'write_file', 'arguments': {'path': 'a.txt', 'content': 'AAA'}}
</tool_call>"##,
        ),
        (
            "qwen3coder",
            r##"<tool_call>
<function=write_file>
<parameter=path>
a.txt
</parameter>
<parameter=content>
AAA
</parameter>
</function>
</tool_call>"##,
        ),
        (
            "qwen3coder-nowrap",
            r##"<function=write_file>
<parameter=path>a.txt</parameter>
</function>"##,
        ),
        (
            "qwen3coder-inline",
            r##"I will write it now.<function=write_file><parameter=path>a.txt</parameter></function>"##,
        ),
        (
            "qwen-cn",
            r##"✿FUNCTION✿: write_file
✿ARGS✿: {"path": "a.txt", "content": "AAA"}
✿RESULT✿"##,
        ),
        (
            "glm",
            r##"<tool_call>write_file
<arg_key>path</arg_key>
<arg_value>a.txt</arg_value>
</tool_call>"##,
        ),
        (
            "glm-nowrap",
            r##"write_file
<arg_key>path</arg_key>
<arg_value>a.txt</arg_value>"##,
        ),
        (
            "chatglm3",
            r##"write_file
```python
tool_call(path="a.txt", content="AAA")
```"##,
        ),
        (
            "glm4",
            r##"write_file
{"path": "a.txt", "content": "AAA"}"##,
        ),
        ("mistral", r##"[TOOL_CALLS][{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]"##),
        ("mistral-v11", r##"[TOOL_CALLS]write_file[ARGS]{"path": "a.txt", "content": "AAA"}"##),
        ("mistral-v13", r##"[TOOL_CALLS]write_file[CALL_ID]abc123456[ARGS]{"path": "a.txt", "content": "AAA"}"##),
        ("mistral-stripped", r##"[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]"##),
        ("mistral-name-json", r##"write_file{"path": "a.txt", "content": "AAA"}"##),
        ("mistral-args", r##"write_file[ARGS]{"path": "a.txt", "content": "AAA"}"##),
        ("llama3-json", r##"{"name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}"##),
        (
            "llama3-pytag",
            r##"<|python_tag|>{"name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}"##,
        ),
        ("llama3-function", r##"<function=write_file>{"path": "a.txt", "content": "AAA"}</function>"##),
        (
            "llama3-type",
            r##"{"type": "function", "name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}"##,
        ),
        (
            "llama3-semicolon",
            r##"{"name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}; {"name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}"##,
        ),
        ("llama4-py", r##"[write_file(path="a.txt", content="AAA")]"##),
        ("llama4-py-two", r##"[write_file(path="a.txt", content="AAA"), write_file(path="b.txt", content="B")]"##),
        ("llama4-tags", r##"<|python_start|>[write_file(path="a.txt")]<|python_end|>"##),
        (
            "gemma-toolcode",
            r##"```tool_code
write_file(path="a.txt", content="AAA")
```"##,
        ),
        (
            "gemma-toolcode-print",
            r##"```tool_code
print(write_file(path="a.txt", content="AAA"))
```"##,
        ),
        (
            "gemini-default_api",
            r##"```tool_code
print(default_api.write_file(path="a.txt", content="AAA"))
```"##,
        ),
        ("gemini-default-plain", r##"print(default_api.write_file(path = "a.txt", content = "AAA"))"##),
        (
            "functiongemma",
            r##"<start_function_call>call:write_file{path:<escape>a.txt<escape>,content:<escape>AAA<escape>}<end_function_call>"##,
        ),
        ("gemma4", r##"<|tool_call>call:write_file{path:<|"|>a.txt<|"|>}<tool_call|>"##),
        (
            "deepseek-v3",
            r##"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_file
```json
{"path": "a.txt", "content": "AAA"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"##,
        ),
        (
            "deepseek-nobegin",
            r##"function<｜tool▁sep｜>write_file
```json
{"path": "a.txt", "content": "AAA"}
```<｜tool▁call▁end｜>"##,
        ),
        (
            "deepseek-v3.1",
            r##"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write_file<｜tool▁sep｜>{"path": "a.txt", "content": "AAA"}<｜tool▁call▁end｜>"##,
        ),
        (
            "deepseek-dsml",
            r##"<｜DSML｜function_calls>
<｜DSML｜invoke name="write_file">
<｜DSML｜parameter name="path" string="true">a.txt</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>"##,
        ),
        (
            "deepseek-dsml-ascii",
            r##"<| DSML | function_calls>
<| DSML | invoke name="write_file">
</| DSML | invoke>"##,
        ),
        (
            "kimi",
            r##"<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{"path": "a.txt", "content": "AAA"}<|tool_call_end|><|tool_calls_section_end|>"##,
        ),
        (
            "kimi-words",
            r##"I write it.<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{"path": "a.txt", "content": "AAA"}<|tool_call_end|>"##,
        ),
        ("kimi-bare", r##"functions.write_file:0{"path": "a.txt", "content": "AAA"}"##),
        ("kimi-bare2", r##"functions.write_file:0<|tool_call_argument_begin|>{"path": "a.txt", "content": "AAA"}"##),
        (
            "harmony",
            r##"<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{"path": "a.txt", "content": "AAA"}<|call|>"##,
        ),
        (
            "harmony-start",
            r##"<|start|>assistant<|channel|>commentary to=functions.write_file<|message|>{"path": "a.txt", "content": "AAA"}"##,
        ),
        (
            "harmony-analysis-then",
            r##"<|channel|>analysis<|message|>I must write.<|end|><|start|>assistant<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{"path": "a.txt", "content": "AAA"}<|call|>"##,
        ),
        ("harmony-stripped", r##"commentary to=functions.write_file json{"path": "a.txt", "content": "AAA"}"##),
        (
            "harmony-stripped2",
            r##"assistantcommentary to=functions.write_file <|constrain|>json<|message|>{"path": "a.txt", "content": "AAA"}"##,
        ),
        ("harmony-to", r##" to=functions.write_file <|constrain|>json<|message|>{"path": "a.txt", "content": "AAA"}"##),
        ("harmony-analysis-to", r##"analysis to=functions.write_file code{"path": "a.txt", "content": "AAA"}"##),
        ("granite", r##"<|tool_call|>[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]"##),
        ("granite3", r##"<tool_call>[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]"##),
        (
            "phi4",
            r##"<|tool_call|>[{"type":"function","function":{"name":"write_file","arguments":{"path": "a.txt", "content": "AAA"}}}]<|/tool_call|>"##,
        ),
        ("phi4-functools", r##"functools[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]"##),
        (
            "command-r",
            r##"Action: ```json
[{"tool_name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}]```"##,
        ),
        (
            "command-r7b",
            r##"<|START_ACTION|>[{"tool_call_id":"0","tool_name":"write_file","parameters":{"path": "a.txt", "content": "AAA"}}]<|END_ACTION|>"##,
        ),
        (
            "react",
            r##"Thought: I must write.
Action: write_file
Action Input: {"path": "a.txt", "content": "AAA"}"##,
        ),
        (
            "react-md",
            r##"**Action:** write_file
**Action Input:** {"path": "a.txt", "content": "AAA"}"##,
        ),
        (
            "anthropic-xml",
            r##"<function_calls>
<invoke name="write_file">
<parameter name="path">a.txt</parameter>
</invoke>
</function_calls>"##,
        ),
        ("anthropic-invoke", r##"<invoke name="write_file"><parameter name="path">a.txt</parameter></invoke>"##),
        (
            "anthropic-ns",
            r##"<function_calls>
<invoke name="write_file">
</invoke>"##,
        ),
        (
            "minimax",
            r##"<minimax:tool_call>
<invoke name="write_file">
<parameter name="path">a.txt</parameter>
</invoke>
</minimax:tool_call>"##,
        ),
        (
            "minimax-m1",
            r##"<tool_calls>
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
</tool_calls>"##,
        ),
        (
            "internlm",
            r##"<|action_start|><|plugin|>
{"name": "write_file", "parameters": {"path": "a.txt", "content": "AAA"}}<|action_end|>"##,
        ),
        (
            "hunyuan",
            r##"<tool_calls>[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]</tool_calls>"##,
        ),
        (
            "seed-oss",
            r##"<seed:tool_call>
<function=write_file>
<parameter=path>a.txt</parameter>
</function>
</seed:tool_call>"##,
        ),
        (
            "olmo3",
            r##"<function_calls>
write_file(path="a.txt", content="AAA")
</function_calls>"##,
        ),
        ("xlam", r##"[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]</think>"##),
        (
            "jamba",
            r##"<tool_calls>[
    {"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
]</tool_calls>"##,
        ),
        ("lfm2", r##"<|tool_call_start|>[write_file(path="a.txt", content="AAA")]<|tool_call_end|>"##),
        ("lfm2-stripped", r##"[write_file(path="a.txt", content="AAA")]"##),
        (
            "longcat",
            r##"<longcat_tool_call>{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}</longcat_tool_call>"##,
        ),
        (
            "ernie",
            r##"<tool_call>
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
</tool_call>
</s>"##,
        ),
        (
            "step3",
            r##"<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="write_file">"##,
        ),
        (
            "nemotron",
            r##"<TOOLCALL>[{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}]</TOOLCALL>"##,
        ),
        ("apertus", r##"<|tools_prefix|>[{"write_file": {"path": "a.txt", "content": "AAA"}}]<|tools_suffix|>"##),
        ("apertus-bare", r##"[{"write_file": {"path": "a.txt", "content": "AAA"}}]"##),
        (
            "fence-json",
            r##"```json
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
```"##,
        ),
        (
            "fence-words",
            r##"I will write the file.

```json
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
```"##,
        ),
        (
            "fence-words-after",
            r##"```json
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
```

I have written the file."##,
        ),
        (
            "fence-tool_call",
            r##"```tool_call
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
```"##,
        ),
        (
            "fence-xml",
            r##"```xml
<tool_call>
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
</tool_call>
```"##,
        ),
        (
            "json-words-after",
            r##"{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}

The file has been written."##,
        ),
        (
            "json-tool_uses",
            r##"{"tool_uses":[{"recipient_name":"functions.write_file","parameters":{"path": "a.txt", "content": "AAA"}}]}"##,
        ),
        (
            "json-tool_calls",
            r##"{"tool_calls":[{"id":"c1","type":"function","function":{"name":"write_file","arguments":"{}"}}]}"##,
        ),
        (
            "json-content-tool_calls",
            r##"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"write_file","arguments":"{}"}}]}"##,
        ),
        ("json-function-args", r##"{"function":"write_file","args":{"path": "a.txt", "content": "AAA"}}"##),
        ("json-tool", r##"{"tool":"write_file","arguments":{"path": "a.txt", "content": "AAA"}}"##),
        ("json-thought", r##"{"thought":"x","tool":"write_file","arguments":{"path": "a.txt", "content": "AAA"}}"##),
        ("json-noargs", r##"{"name":"list_dir"}"##),
        ("json-noargs-args", r##"{"name":"list_dir","arguments":{}}"##),
        ("json-wrong-quote", r##"{name: "write_file", arguments: {path: "a.txt"}}"##),
        ("json-cut", r##"{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}"##),
        ("bare-call", r##"write_file(path="a.txt", content="AAA")"##),
        ("bare-print", r##"print(write_file(path="a.txt"))"##),
        ("bare-backtick", r##"`write_file(path="a.txt", content="AAA")`"##),
        ("bare-words", r##"Let me write it: write_file(path="a.txt", content="AAA")"##),
        (
            "tool-name-xml",
            r##"<write_file>
<path>a.txt</path>
<content>AAA</content>
</write_file>"##,
        ),
        (
            "tool-name-xml-words",
            r##"I write it.

<write_file>
<path>a.txt</path>
</write_file>"##,
        ),
        (
            "tool_use-xml",
            r##"<tool_use>
<name>write_file</name>
<arguments>{"path": "a.txt", "content": "AAA"}</arguments>
</tool_use>"##,
        ),
        ("tool-tag", r##"<tool>write_file</tool><args>{"path": "a.txt", "content": "AAA"}</args>"##),
        ("tool-colon", r##"[tool: write_file] {"path": "a.txt", "content": "AAA"}"##),
        ("call-tool", r##"CALL: write_file {"path": "a.txt", "content": "AAA"}"##),
        ("assistant-to", r##"assistant to=write_file: {"path": "a.txt", "content": "AAA"}"##),
        (
            "result-invented",
            r##"<tool_call>
{"name": "write_file", "arguments": {"path": "a.txt", "content": "AAA"}}
</tool_call>
<tool_response>
ok
</tool_response>
Done, I wrote it."##,
        ),
        ("attribute", r##"<tool name="write_file"><arg name="path">a.txt</arg></tool>"##),
        ("use-tool", "I write it.\n<use_tool tool='write_file'>{\"path\": \"a.txt\"}</use_tool>"),
        ("at", r##"@write_file {"path": "a.txt", "content": "AAA"}"##),
        ("tool-input", "Tool: write_file\nInput: {\"path\": \"a.txt\"}"),
        ("tool-name", "Tool name: write_file\nArguments: {\"path\": \"a.txt\"}"),
        ("tool-call", r##"Tool call: write_file({"path": "a.txt"})"##),
        ("yaml", "tool: write_file\narguments:\n  path: a.txt\n  content: AAA"),
    ]
}
