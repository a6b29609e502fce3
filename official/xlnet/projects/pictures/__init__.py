"""Pages and pictures of models, data sets and runs: `xlnet inspect` and `report.html`."""
