// The composer of jobs.
import "../common/page.js";
import "htmx.org";
import "../launch/environments.js";
import "../launch/inside.js";
import "../launch/folder_sizes.js";
import "../common/relogin.js";
import "../common/copy.js";
import "../jobs/compose.js";
import "../jobs/qos.js";

// For the browser tests, which import this module from the page.
export { send } from "../common/relogin.js";
