// The list of jobs.
import "../common/page.js";
import "../common/morph.js";
import "../common/times.js";
import "../lists/list.js";
import "../lists/pick.js";
import "../common/menu.js";
import * as selection from "../lists/pick.js";
import { askBeforeActions } from "../jobs/actions.js";

askBeforeActions(selection);
