// The page of a history needs no script but for its colours.

themes();
performance.mark("queryeval-ready");
