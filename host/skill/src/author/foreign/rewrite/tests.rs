use super::*;
use std::collections::BTreeMap;

fn layout() -> Layout {
    let places = [
        ("SKILL.md", "SKILL.md"),
        ("core/build.py", "scripts/core/build.py"),
        ("core/__init__.py", "scripts/core/__init__.py"),
        ("tools/pack.py", "scripts/tools/pack.py"),
        ("scripts/fill.py", "scripts/fill.py"),
        ("forms.md", "references/forms.md"),
        ("my notes.md", "references/my notes.md"),
        ("README.md", "references/README.md"),
        ("guide/one.md", "references/guide/one.md"),
        ("guide/two.md", "references/guide/two.md"),
        ("references/api.md", "references/api.md"),
    ];
    let places: BTreeMap<String, String> = places.map(|(from, to)| (from.to_owned(), to.to_owned())).into();
    Layout::new("pdf", vec!["pdf".to_owned(), "pdf-1.0".to_owned()], &places)
}

fn rewritten(from: &str, text: &str, is_foreign: bool) -> String {
    let layout = layout();
    let to = if from.contains('/') || from == "SKILL.md" { from.to_owned() } else { format!("references/{from}") };
    let to = if from.starts_with("guide/") { format!("references/{from}") } else { to };
    Rewriter { layout: &layout, is_foreign }.rewrite(&Text { from, to: &to, text }, &mut Vec::new())
}

#[test]
fn paths_of_instructions_lead_to_the_new_places() {
    for (before, after) in [
        // Links.
        ("See [forms](forms.md).", "See [forms](references/forms.md)."),
        ("[a](./forms.md#top) [b](guide/one.md)", "[a](references/forms.md#top) [b](references/guide/one.md)"),
        ("[x]: forms.md", "[x]: references/forms.md"),
        ("<a href=\"forms.md\">", "<a href=\"references/forms.md\">"),
        ("[n](my%20notes.md), my notes.md", "[n](references/my%20notes.md), references/my notes.md"),
        ("[r](README.md)", "[r](references/README.md)"),
        // Code marks, prose and directories.
        ("Read `forms.md`, then FORMS.md.", "Read `references/forms.md`, then references/forms.md."),
        ("All of `guide/` and guide/*.md", "All of `references/guide/` and references/guide/*.md"),
        ("license: Terms in forms.md", "license: Terms in references/forms.md"),
        ("Write a `README.md` and https://x.example/forms.md", "Write a `README.md` and https://x.example/forms.md"),
        ("Edit SKILL.md, `{\"path\": \"README.md\"}`", "Edit SKILL.md, `{\"path\": \"README.md\"}`"),
        ("`pip install -r README.md`", "`pip install -r /skills/pdf/references/README.md`"),
        ("core and/or guide, forms", "core and/or guide, forms"),
        ("`references/api.md` stays", "`references/api.md` stays"),
        // Commands run in the workspace.
        ("Run `python tools/pack.py in.pdf`", "Run `python /skills/pdf/scripts/tools/pack.py in.pdf`"),
        ("```bash\npython scripts/fill.py\n```", "```bash\npython /skills/pdf/scripts/fill.py\n```"),
        ("```\n$ ./tools/pack.py x\n```", "```\n$ /skills/pdf/scripts/tools/pack.py x\n```"),
        (
            "```sh\n# see forms.md\ncd core && ls\n```",
            "```sh\n# see references/forms.md\ncd /skills/pdf/scripts/core && ls\n```",
        ),
        ("Run python tools/pack.py now", "Run python /skills/pdf/scripts/tools/pack.py now"),
        ("```js\nopen(\"forms.md\")\n```", "```js\nopen(\"/skills/pdf/references/forms.md\")\n```"),
        // Modules of Python.
        (
            "```python\nfrom core.build import x\nimport core\n```",
            "```python\nimport sys; sys.path.insert(0, \"/skills/pdf/scripts\")\nfrom core.build import x\nimport core\n```",
        ),
        ("`python -m core.build a`", "`PYTHONPATH=/skills/pdf/scripts python -m core.build a`"),
        ("```sh\npython3 -m scripts.fill\n```", "```sh\nPYTHONPATH=/skills/pdf python3 -m scripts.fill\n```"),
        (
            "```sh\npython -c \"from core import x\"\n```",
            "```sh\nPYTHONPATH=/skills/pdf/scripts python -c \"from core import x\"\n```",
        ),
        ("```python\nimport os\nfrom json import x\n```", "```python\nimport os\nfrom json import x\n```"),
        // Variables and places of other hosts.
        ("`${CLAUDE_SKILL_DIR}/tools/pack.py`", "`/skills/pdf/scripts/tools/pack.py`"),
        (
            "`$SKILL_ROOT/forms.md`, {baseDir}/forms.md",
            "`/skills/pdf/references/forms.md`, /skills/pdf/references/forms.md",
        ),
        ("`<skill-dir>/scripts/fill.py` and $HOME/forms.md", "`/skills/pdf/scripts/fill.py` and $HOME/forms.md"),
        ("~/.claude/skills/pdf/forms.md", "/skills/pdf/references/forms.md"),
        ("`/mnt/skills/public/pdf-1.0/scripts/fill.py`", "`/skills/pdf/scripts/fill.py`"),
        ("```sh\ncd ~/.claude/skills/pdf/\n```", "```sh\ncd /skills/pdf/\n```"),
    ] {
        assert_eq!(rewritten("SKILL.md", before, true), after);
        assert_eq!(rewritten("SKILL.md", after, true), after, "a second import changes nothing");
    }
}

#[test]
fn paths_of_other_texts_are_whole_unless_they_lead_there() {
    for (from, before, after) in [
        ("guide/one.md", "[two](two.md), `two.md`", "[two](two.md), `two.md`"),
        ("guide/one.md", "[f](../forms.md)", "[f](../forms.md)"),
        ("guide/one.md", "[f](forms.md)", "[f](/skills/pdf/references/forms.md)"),
        ("guide/one.md", "`guide/two.md`", "`/skills/pdf/references/guide/two.md`"),
        ("guide/one.md", "[a](../references/api.md)", "[a](/skills/pdf/references/api.md)"),
        ("forms.md", "`python scripts/fill.py`", "`python /skills/pdf/scripts/fill.py`"),
    ] {
        assert_eq!(rewritten(from, before, true), after);
    }
}

#[test]
fn own_skill_keeps_its_commands() {
    for text in ["`python scripts/fill.py`", "```sh\npython scripts/fill.py\n```", "```python\nfrom core import x\n```"]
    {
        assert_eq!(rewritten("SKILL.md", text, false), text);
    }
}
