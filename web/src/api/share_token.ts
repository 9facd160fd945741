// The token stays in the tab that it was given to, and is stored nowhere. Another tab of the same
// page, as a link that is opened in a new one makes it, asks those that are open for theirs.
import { setToken, token, tokenAsked } from "./http.js";

const ASK = "ask";

export function shareToken(): void {
  if (!("BroadcastChannel" in window)) return;
  // Under one host there may be several servers, each below a path of its own.
  const channel = new BroadcastChannel(`shirabe-token ${new URL(".", location.href).pathname}`);
  let asking = token.value === "";
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data === ASK) {
      const works = token.value !== "" && tokenAsked.value === "";
      if (works) channel.postMessage({ token: token.value });
      return;
    }
    const given = (data as { token?: unknown } | null)?.token;
    if (!asking || token.value !== "" || typeof given !== "string") return;
    asking = false;
    setToken(given);
  };
  if (asking) channel.postMessage(ASK);
}
