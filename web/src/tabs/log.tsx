// The log of an attempt, as it is written. What a program prints is text and nothing else.
import { useEffect, useRef, useState } from "preact/hooks";
import { pathOf } from "../api/experiments.js";
import { ask, follow, session } from "../api/http.js";
import { LogText } from "../log.js";
import { count } from "../format.js";
import { namespaceFlag } from "../pages/context.js";
import type { TrialView } from "../pages/trial.js";
import { causeOf } from "../cause.js";
import { noteError } from "../ui/dialog.js";
import { Empty, Panel, save } from "../ui/panel.js";
import { param, setParams } from "../url.js";

function useLog(path: string) {
  const [shown, setShown] = useState({ path, text: "", dropped: 0, ended: false, problem: "" });
  const epoch = session.value;
  useEffect(() => {
    const abort = new AbortController();
    const log = new LogText();
    let timer = 0;
    let ended = false;
    const draw = () => {
      timer = 0;
      setShown({ path, text: log.text, dropped: log.dropped, ended, problem: "" });
    };
    const later = () => (timer ||= setTimeout(draw, 100));
    follow(
      `${path}?follow=true`,
      (message) => {
        if (message.event !== "log") return;
        log.add((JSON.parse(message.data) as { text: string }).text);
        later();
      },
      abort.signal,
    ).then(
      () => {
        ended = true;
        later();
      },
      (error: Error) => setShown({
        path, text: log.text, dropped: log.dropped, ended, problem: error.message,
      }),
    );
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, epoch]);
  return shown.path === path ? shown : { ...shown, path, text: "", dropped: 0, ended: false };
}

function Lines(props: { text: string; follow: boolean }) {
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const element = box.current!;
    if (element.textContent !== props.text) element.textContent = props.text;
    if (props.follow) element.scrollTop = element.scrollHeight;
  }, [props.text, props.follow]);
  return (
    <pre
      class="log"
      ref={box}
      role="log"
      aria-live="off"
      aria-label="Log"
      tabIndex={0}
    />
  );
}

export default function Log(props: { view: TrialView }) {
  const { key, number, attempts } = props.view;
  const asked = Number(param("attempt"));
  const attempt = attempts.find((one) => one.number === asked) ?? attempts.at(-1);
  const [tail, setTail] = useState(true);
  if (!attempt) {
    return (
      <Panel title="Log">
        <Empty title="It has not been started yet" />
      </Panel>
    );
  }
  const path = `${pathOf(key)}/trials/${number}/attempts/${attempt.number}/log`;
  const choose = (n: string) => setParams({ attempt: n });
  const download = () =>
    ask(path)
      .then((response) => response.blob())
      .then((blob) => save(`${key.name}-${number}-a${attempt.number}.log`, blob), noteError);
  return (
    <Panel
      title="Log"
      command={`shirabe logs ${key.name}/${number} --attempt ${attempt.number} -f` +
        namespaceFlag(key)}
      tools={
        <>
          <label>
            Attempt
            <select value={attempt.number} onChange={(e) => choose(e.currentTarget.value)}>
              {attempts.map((one) => (
                <option key={one.number} value={one.number}>
                  {one.number}: {causeOf(one).word}
                </option>
              ))}
            </select>
          </label>
          <label>
            <input
              type="checkbox"
              checked={tail}
              onChange={(event) => setTail(event.currentTarget.checked)}
            />
            stay at the end
          </label>
          <button onClick={() => void download()}>Download</button>
        </>
      }
    >
      <Following path={path} tail={tail} />
    </Panel>
  );
}

// Also of what is no trial (tabs/follow_up.tsx).
export function Following(props: { path: string; tail: boolean }) {
  const log = useLog(props.path);
  return (
    <>
      {log.dropped > 0 && (
        <p class="hint">
          The first {count(log.dropped)} lines are not shown; the download has them.
        </p>
      )}
      {log.problem !== "" && <p class="problem">{log.problem}</p>}
      {log.text === "" ? (
        <div class="empty" role="status">
          <strong>{log.ended ? "It has printed nothing." : "No output yet"}</strong>
        </div>
      ) : (
        <>
          <Lines text={log.text} follow={props.tail} />
          <p class="dim" role="status">
            {log.ended ? "This is all of it." : "It may print more."}
          </p>
        </>
      )}
    </>
  );
}
