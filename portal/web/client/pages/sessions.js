// The list of sessions.
import "../common/page.js";
import "../common/morph.js";
import "../common/times.js";
import "../lists/list.js";
import "../lists/pick.js";
import "../common/menu.js";
import "../sessions/end.js";
import "../sessions/actions.js";
import "../sessions/notify.js";
import "../apps/apps.js";
import "../sessions/no_folder.js";

// For the browser tests, which import this module from the page.
export { refresh as refreshTimes } from "../common/times.js";
