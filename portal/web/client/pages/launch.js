// The launch wizard.
import "../common/page.js";
import "htmx.org";
import "../common/times.js";
import "../launch/env.js";
import "../launch/environments.js";
import "../launch/inside.js";
import "../common/copy.js";
import "../launch/folder_sizes.js";
import "../common/relogin.js";
import "../launch/checks.js";
import "../launch/launch.js";
import "../launch/draft.js";
import "../launch/time_limit.js";
import "../launch/options.js";

// For the browser tests, which import this module from the page.
export { default as htmx } from "htmx.org";
