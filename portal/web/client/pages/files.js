// Files: storage folders, folders and single files.
import "../common/page.js";
import "../common/times.js";
import "../common/menu.js";
import "../common/relogin.js";
import "../files/ask.js";
import "../files/folder.js";
import "../files/selection.js";
import "../files/panel.js";
import "../files/dialogs.js";
import "../files/destination.js";
import "../files/start.js";
import "../files/share.js";
import "../uploads/queue.js";
import "../uploads/sources.js";
import "../files/uploads.js";
import "../file/file.js";
import "../file/viewers.js";
import "../file/edit.js";

// For the browser tests, which import this module from the page.
export { refresh } from "../files/folder.js";
export { items as uploads } from "../uploads/queue.js";
