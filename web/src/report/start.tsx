// Lets the page read from the data of its own file instead of a server, and says what it is.
import "./report.css";
import { answerFrom } from "../api/http.js";
import { setRecording } from "../recording.js";
import { plural } from "../format.js";
import type { ReportData } from "./replies.js";
import { FORMAT, Replies } from "./replies.js";

function text(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

function About(props: { data: ReportData }) {
  const { data } = props;
  const made = new Date(data.made);
  return (
    <div class="report-bar">
      <span>
        Report of {data.namespace}/{data.experiment}, made{" "}
        <time dateTime={made.toISOString()}>{made.toLocaleString()}</time> by shirabe{" "}
        {data.program}
      </span>
      <details>
        <summary>{plural(data.leftOut.length, "thing")} left out</summary>
        <ul>{data.leftOut.map((one) => <li key={one}>{one}</li>)}</ul>
      </details>
    </div>
  );
}

function start(data: ReportData): void {
  if (data.format !== FORMAT) throw new Error(`the report is of format ${data.format}`);
  const replies = new Replies(data);
  answerFrom((path, how) => replies.answer(path, how.method ?? "GET"));
  setRecording({
    made: data.made, holds: (path) => replies.holds(path), Bar: () => <About data={data} />,
  });
  // What draws in the background stands in the file, too.
  const raster = new Blob([text("raster")], { type: "text/javascript" });
  const script = document.querySelector<HTMLScriptElement>("script[data-raster]");
  if (script) script.dataset["raster"] = URL.createObjectURL(raster);
  if (!/^#\/./.test(location.hash)) {
    const place = [data.namespace, data.experiment].map(encodeURIComponent).join("/");
    history.replaceState(null, "", `#/e/${place}`);
  }
}

start(JSON.parse(text("report")) as ReportData);
