"use strict";
// Makes the console's pages live, and typing and approving safer. Never decides: the server checks each form again. What others wrote
// gets onto a page as text, or in html that our server escaped.

const HOLD_MS = 1000;
const PAUSE_MS_MAX = 10000;
const STATES_MAX = 200;

const SAYS = {
	ended: "The session has ended. Your text is kept. ",
	signIn: "Sign in again",
	unread: "Read to the end of the page first.",
	tap: "Hold for one second, or type approve.",
	holding: "Keep holding…",
	sent: "Sent.",
	unsent: "No answer came. Your text is kept; see whether it arrived before you send again.",
	answered: "The agent answered.",
	waiting: " waiting in the inbox.",
};

/** A text, and as [start, end) what of it was pasted. Only typed text can ask for something, so doubt means pasted. */
class Spans {
	constructor(text = "", marks = [[0, text.length]]) {
		this.states = new Map();
		this.become(text, join(marks));
	}

	/** `start`: of the selection before the edit; `caret`: its end after it; `steps`: inputs of a composition. */
	edit(now, { type = "", start = Infinity, caret = NaN, steps = 0 } = {}) {
		const old = this.text;
		const undo = type.startsWith("history");
		if (now === old) return;
		if (undo && this.states.has(now)) return this.become(now, this.states.get(now));
		let from = 0;
		let cut = old.length - now.length + caret; // an edit ends at the caret, which tells equal letters apart
		let typed = false;
		if (undo || !(cut >= 0) || old.slice(cut) !== now.slice(caret)) cut = old.length;
		else {
			const most = Math.min(start, caret, cut);
			while (from < most && old[from] === now[from]) from++;
			if (/[\ud800-\udbff]/.test(now[from - 1])) from--; // half of a character
			const added = [...now.slice(from, caret)].length;
			// More at once comes from a clipboard, a dictionary or a program.
			if (/^insert(Text|LineBreak|Paragraph)$/.test(type)) typed = added < 2;
			// Input methods rewrite what they compose; typed, it grows by at most a character an input.
			const clean = !this.marks.some(([start, end]) => start < cut && end > from);
			if (type === "composition") typed = clean && added <= [...old.slice(from, cut)].length + steps;
		}
		const shift = now.length - old.length;
		const to = cut + shift;
		const marks = typed ? [] : [[from, to]];
		for (const [start, end] of this.marks) marks.push([start, Math.min(end, from)], [Math.max(start + shift, to), end + shift]);
		this.become(now, join(marks));
	}

	become(text, marks) {
		Object.assign(this, { text, marks });
		this.states.set(text, join([...(this.states.get(text) || []), ...marks]));
		if (this.states.size > STATES_MAX) this.states.delete([...this.states.keys()][0]);
	}

	/** The marks in bytes of UTF-8, a line break being one. */
	bytes() {
		const size = (at) => new TextEncoder().encode(this.text.slice(0, at)).length;
		return this.marks.map(([start, end]) => [size(start), size(end)]);
	}
}

function join(marks) {
	const out = [];
	for (const [start, end] of marks.sort((a, b) => a[0] - b[0])) {
		const last = out.at(-1);
		if (start >= end) continue;
		if (last && start <= last[1]) last[1] = Math.max(last[1], end);
		else out.push([start, end]);
	}
	return out;
}

/** A yes that takes a second. It begins if `ready()`, and fires at most once. */
class Hold {
	constructor(ready, show, fire) {
		Object.assign(this, { ready, show, fire, timer: null, done: false });
	}

	press() {
		if (this.timer || this.done) return;
		if (!this.ready()) return this.show("unread");
		this.show("holding");
		this.timer = setTimeout(() => {
			this.timer = null;
			if (!this.done) this.fire();
			this.done = true;
		}, HOLD_MS);
	}

	release() {
		if (!this.timer) return;
		clearTimeout(this.timer);
		this.timer = null;
		this.show("tap");
	}
}

const find = (query, root = document) => root.querySelector(query);
const all = (query, root = document) => [...root.querySelectorAll(query)];
const byId = (id) => document.getElementById(id);
const on = (target, names, act) => names.split(" ").forEach((name) => target.addEventListener(name, act));
const isKey = (event) => event.key === "Enter" || event.key === " ";

function make(tag, set, textContent = "") {
	const made = Object.assign(document.createElement(tag), { textContent });
	for (const name in set) made.setAttribute(name, set[name]);
	return made;
}

async function load(url, options) {
	const answer = await fetch(url, { headers: { "X-Requested-With": "console" }, ...options });
	if (answer.status === 401) ended();
	return { answer, page: new DOMParser().parseFromString(await answer.text(), "text/html") };
}

/** For screen readers, which would read streamed text letter by letter. */
const say = (text) => (byId("voice").textContent = text);

function offline(...text) {
	const notice = byId("offline");
	notice.replaceChildren(...text);
	notice.hidden = !text.length;
}

const ended = () => offline(SAYS.ended, make("a", { href: "/" }, SAYS.signIn));

function approving(form) {
	const button = find(".go", form);
	const { typed } = form;
	const [hint, unread] = ["hold-hint", "unread"].map((id) => find("#" + id, form) || form.appendChild(make("p", { id })));
	hint.setAttribute("role", "status");
	unread.textContent ||= SAYS.unread;

	const last = byId("needed-end") || form;
	const needed = all("section.part").filter((part) => part.compareDocumentPosition(last) & Node.DOCUMENT_POSITION_FOLLOWING);
	const unseen = new Set([...needed.map((part) => part.appendChild(make("span"))), last]);
	const settle = (entries) => {
		for (const entry of entries) if (entry.isIntersecting) unseen.delete(entry.target);
		unread.hidden = !unseen.size;
		button.setAttribute("aria-disabled", unseen.size > 0);
		button.setAttribute("aria-describedby", unseen.size ? "unread" : "hold-hint");
	};
	settle([]);
	const watch = new IntersectionObserver(settle);
	unseen.forEach((end) => watch.observe(end));

	const show = (state) => {
		form.classList.toggle("holding", state === "holding");
		if (state !== "unread") return (hint.textContent = SAYS[state]);
		say(SAYS.unread);
		[...unseen][0].scrollIntoView({ block: "center" });
	};
	const hold = new Hold(() => !unseen.size, show, () => {
		typed.value = "approve";
		form.requestSubmit();
	});
	on(button, "pointerdown", (event) => {
		if (event.button || !event.isPrimary) return;
		hold.press();
		button.releasePointerCapture(event.pointerId); // else a finger that slides off does not leave
	});
	on(button, "keydown", (event) => {
		if (!isKey(event)) return;
		event.preventDefault(); // its click would be a tap
		if (!event.repeat) hold.press();
	});
	on(button, "keyup pointerup pointerleave pointercancel blur", () => hold.release());
	on(window, "blur", () => hold.release());
	on(form, "submit", (event) => {
		const state = unseen.size ? "unread" : typed.value.trim() === "approve" ? "sent" : "tap";
		if (state !== "sent" || button.disabled) event.preventDefault();
		else button.disabled = hold.done = true;
		show(state);
	});
}

/** A long page comes in steps: they become one page before it can be decided. */
async function steps() {
	for (let next; (next = find(".steps a[rel=next]")); ) {
		const article = find(".page");
		const { answer, page } = await load(next.href);
		const more = find(".page", page);
		// A page that changed meanwhile, or did not come, stays in steps.
		if (!answer.ok || more?.dataset.digest !== article.dataset.digest) return;
		next.closest(".steps").remove();
		append(article, more.children);
		append(article.parentNode, all(".page ~ *", page));
		if (!find(".steps a[rel=next]")) find(".steps")?.remove();
	}
}

/** Keeps the text of a field until the server has it, and which parts of it were typed. */
function keeping(field) {
	// By person: the next one in this tab must not find it.
	const key = `${find(".who")?.textContent} ${field.form.action} ${field.name}`;
	const draft = JSON.parse(sessionStorage.getItem(key));
	if (draft) field.value ||= draft.text;
	let spans = new Spans(field.value, draft?.text === field.value ? draft.marks : undefined);
	let start;
	let composing;
	const edit = (more) => {
		spans.edit(field.value, { caret: field.selectionEnd, start, ...more });
		start = undefined; // some edits have no beforeinput
		sessionStorage.setItem(key, JSON.stringify({ text: spans.text, marks: spans.marks }));
	};
	on(field, "beforeinput", () => (start = field.selectionStart));
	on(field, "compositionstart", () => (composing = { type: "composition", start: field.selectionStart, steps: 0 }));
	on(field, "compositionend", () => {
		edit(composing);
		composing = null;
	});
	on(field, "input", (event) => (composing ? composing.steps++ : edit({ type: event.inputType })));
	return {
		pasted() {
			edit(composing); // what no event told of was not typed
			return JSON.stringify(spans.bytes());
		},
		clear() {
			field.value = "";
			spans = new Spans();
			sessionStorage.removeItem(key);
		},
	};
}

function talking(form) {
	const { text, files } = form;
	const kept = keeping(text);
	on(form, "submit", async (event) => {
		event.preventDefault();
		if (text.readOnly) return;
		find(".notice", form)?.remove();
		const body = new FormData(form);
		body.set("typed", "1");
		body.set("pasted", kept.pasted());
		text.readOnly = true; // what is typed meanwhile would be lost
		const { answer, page = make("p") } = await load(form.action, { method: "POST", body }).catch(() => ({}));
		text.readOnly = false;
		const talk = answer?.ok && find("#talk", page);
		const notice = find("main .notice", page) || make("p", { class: "notice bad", role: "alert" }, SAYS.unsent);
		if (!talk) return answer?.status === 401 || form.prepend(notice);
		form.reset();
		kept.clear();
		if (location.search) location.href = answer.url;
		append(byId("talk"), talk.children);
	});
	on(text, "keydown", (event) => {
		if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
	});
	on(window, "dragover dragleave drop", (event) => {
		if (!event.dataTransfer.types.includes("Files")) return;
		event.preventDefault();
		const inside = form.contains(event.target);
		form.classList.toggle("dropping", inside && event.type === "dragover");
		if (!inside || event.type !== "drop") return;
		const both = new DataTransfer();
		for (const file of [...files.files, ...event.dataTransfer.files]) both.items.add(file);
		files.files = both.files;
	});
}

/** An address opens by a second press, on another place, that shows where it leads. */
function address(event) {
	const { target } = event;
	if (!target.matches(".url, .open") || (event.type === "keydown" && !isKey(event))) return;
	if (event.repeat) return event.preventDefault(); // a long press is not two
	if (target.matches(".open")) return;
	event.preventDefault();
	let link = target.nextElementSibling;
	if (!link?.matches(".open")) {
		const { href, protocol } = new URL(target.textContent);
		if (!/^https?:$/.test(protocol)) return;
		link = make("a", { class: "open", href, target: "_blank", rel: "noopener noreferrer" }, "Open " + href);
		target.after(link);
	}
	link.focus();
}

/** The only place that reads html: fragments of our own server. */
function parsed(html) {
	const template = document.createElement("template");
	template.innerHTML = html;
	return template.content;
}

function following(act) {
	// Keeps the end of a talk in view, not the form below.
	const end = byId("working");
	const near = end && end.getBoundingClientRect().top < innerHeight + 99;
	act();
	if (near) end.scrollIntoView({ block: "nearest" });
}

function append(target, more) {
	// A reconnect and the answer to a form bring lines again.
	const known = (node) => [node, ...all("[id]", node)].some(({ id }) => id && byId(id));
	const fresh = [...more].filter((node) => node.matches(".part") || !known(node));
	const partial = find(":scope > .partial", target);
	following(() => fresh.forEach((node) => target.insertBefore(node, partial)));
	if (fresh.some((node) => node.matches(".agent:not(.partial)"))) say(SAYS.answered);
	start();
}

function replace(target, html) {
	if (target.shown === html) return;
	target.shown = html;
	const focus = target.contains(document.activeElement) && document.activeElement.textContent;
	const opened = all("[open]", target).map(({ id }) => id);
	target.replaceChildren(parsed(html));
	opened.forEach((id) => byId(id)?.setAttribute("open", ""));
	if (focus) (all("a, button, summary", target).find((one) => one.textContent === focus) || find("main")).focus({ preventScroll: true });
	if (target.id === "inbox-count") say(target.textContent + SAYS.waiting);
	start();
}

function live(url) {
	const away = byId("offline").textContent;
	let stream;
	let timer;
	let pause = 0;

	function open() {
		close();
		stream = new EventSource(url);
		stream.onopen = async () => {
			pause = 0;
			offline();
			// Fragments come again by themselves.
			if (byId("talk")) append(byId("talk"), all("#talk > *", (await load(location.href)).page));
		};
		stream.onerror = async () => {
			offline(away);
			if (stream.readyState !== EventSource.CLOSED) return;
			const probe = new AbortController(); // an EventSource gives up on an HTTP error and does not tell which
			const { status } = await fetch(url, { signal: probe.signal }).catch(() => ({}));
			probe.abort();
			if (status === 401) return ended();
			pause = Math.min(pause * 2 + 1000, PAUSE_MS_MAX);
			timer = setTimeout(open, pause);
		};
		on(stream, "fragment append text", ({ type, data }) => {
			const { id, html, text, new: begins } = JSON.parse(data);
			const target = byId(id);
			if (!target) return;
			if (type === "fragment") replace(target, html);
			else if (type === "append") append(target, parsed(html).children);
			else following(() => (begins ? target.replaceChildren(text) : target.append(text)));
		});
		on(stream, "reload", () => all("textarea, input:not([type])").some((field) => field.value) || location.reload());
	}

	function close() {
		clearTimeout(timer);
		stream?.close();
	}

	// A browser opens six connections to a host: hidden tabs must not use them up.
	const look = () => (document.hidden ? close() : open());
	on(document, "visibilitychange", look);
	on(window, "pagehide", close);
	look();
}

const begun = new WeakSet();

/** Gives what the page has, or has got since, its behaviour. */
function start() {
	const each = (query, act) => all(query).forEach((one) => begun.has(one) || (begun.add(one), act(one)));
	if (!find(".steps a[rel=next]")) each(".approve", approving);
	each(".send", talking);
	each(".reject textarea, .answer textarea", keeping);
	each(".page:not([data-status=pending])", ({ dataset }) => {
		for (const key of Object.keys(sessionStorage)) if (key.includes(`/${dataset.id}/`)) sessionStorage.removeItem(key);
	});
	each(".out", (form) => on(form, "submit", () => sessionStorage.clear()));
	each(".url", (url) => (url.setAttribute("role", "button"), (url.tabIndex = 0)));
}

if (typeof module !== "undefined") module.exports = { Spans, Hold };
else {
	document.body.append(make("p", { id: "voice", class: "unseen", role: "status" }));
	start();
	steps();
	on(document, "click keydown", address);
	on(window, "pageshow", (event) => event.persisted && location.reload());
	const { live: url } = find("main").dataset;
	if (url) live(url);
	if (byId("talk") && !location.search) scrollTo(0, document.body.scrollHeight);
}
