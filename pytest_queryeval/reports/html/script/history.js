// The page of a history needs no script but for its colours.

themes();
printing();
performance.mark("queryeval-ready");
