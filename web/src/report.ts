// The page as one file with its data in it, by `shirabe report`: the data comes first.
import "./report/start.js";
import "./main.js";
