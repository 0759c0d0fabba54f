// The presets.
import "../common/page.js";
import "../sessions/no_folder.js";
