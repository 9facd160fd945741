import "./style.css";
import { render } from "preact";
import { takeTokenFromAddress } from "./api/http.js";
import { shareToken } from "./api/share_token.js";
import { listenToKeys } from "./keys.js";
import { Shell } from "./shell.js";
import { followAddress } from "./url.js";

takeTokenFromAddress();
shareToken();
followAddress();
listenToKeys();
// index.html has the bar, so that something is painted before any of this has come.
const page = document.getElementById("page")!;
page.textContent = "";
render(<Shell />, page);
