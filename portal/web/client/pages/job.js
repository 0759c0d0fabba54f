// One job.
import "../common/page.js";
import "../common/morph.js";
import "../common/times.js";
import "../common/detail.js";
import { askBeforeActions } from "../jobs/actions.js";

askBeforeActions(null);
