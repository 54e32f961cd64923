"""A tracking server of MLflow as far as an export asks it: experiments, runs, batches of values, and artifacts.

Its answers are those of MLflow's REST API: https://mlflow.org/docs/latest/api_reference/rest-api.html. What tests
expect of it they also expect of MLflow's own server, where there is one.
"""

import json
import re
from uuid import uuid4

from http_services import Said

API = "/api/2.0/mlflow/"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
NAMES = re.compile(r"[/\w.\- :]*")


class TrackingService:
    """Keeps what it is told; a service of `http_services.serving`."""

    def __init__(self):
        self.experiments, self.runs, self.files = [], {}, {}

    def __call__(self, asked):
        if asked.path.startswith(f"{ARTIFACTS}/"):
            return self._artifact(asked, asked.path.removeprefix(f"{ARTIFACTS}/"))
        if asked.path == ARTIFACTS:
            folder = asked.parameters["path"]
            names = [name.removeprefix(f"{folder}/") for name in self.files if name.startswith(f"{folder}/")]
            return Said({"files": [{"path": name, "is_dir": False} for name in names]})
        request = json.loads(asked.body) if asked.body else asked.parameters
        answer = getattr(self, asked.path.removeprefix(API).replace("/", "_").replace("-", "_"), None)
        return answer(request) if answer else Said("<html>Not Found</html>", 404, "text/html")

    def _artifact(self, asked, name):
        if asked.method == "PUT":
            self.files[name] = asked.data
            return Said({})
        return Said(self.files[name], content_type="application/octet-stream")

    def experiments_get_by_name(self, told):
        for number, name in enumerate(self.experiments, start=1):
            if name == told["experiment_name"]:
                experiment = {"experiment_id": str(number), "name": name, "lifecycle_stage": "active"}
                return Said({"experiment": experiment})
        return Said({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}, 404)

    def experiments_create(self, told):
        self.experiments.append(told["name"])
        return Said({"experiment_id": str(len(self.experiments))})

    def runs_create(self, told):
        run_id = uuid4().hex  # by which MLflow's client remembers where artifacts go
        experiment = told["experiment_id"]
        info = {
            "run_id": run_id,
            "run_uuid": run_id,
            "experiment_id": experiment,
            "run_name": told.get("run_name", "auspicious-finch-7"),
            "status": "RUNNING",
            "lifecycle_stage": "active",
            "artifact_uri": f"mlflow-artifacts:/{experiment}/{run_id}/artifacts",
        }
        tags = {tag["key"]: tag["value"] for tag in told["tags"]}
        self.runs[run_id] = {"info": info, "tags": tags, "params": {}, "metrics": {}}
        return Said({"run": self._run(run_id)})

    def runs_search(self, told):
        tag, value = re.fullmatch(r"tags\.`(.+)` = '(.+)'", told["filter"]).groups()
        runs = [
            self._run(run_id)
            for run_id, run in self.runs.items()
            if run["info"]["experiment_id"] in told["experiment_ids"] and run["tags"].get(tag) == value
        ]
        return Said({"runs": runs})

    def runs_get(self, told):
        return Said({"run": self._run(told["run_id"])})

    def runs_update(self, told):
        info = self.runs[told["run_id"]]["info"]
        info |= {"status": told["status"], "end_time": told["end_time"]}
        return Said({"run_info": info})

    def runs_log_batch(self, told):
        run = self.runs[told["run_id"]]
        for param in told.get("params", []):
            if run["params"].setdefault(param["key"], param["value"]) != param["value"]:
                message = f"Changing param values is not allowed: {param['key']}"
                return Said({"error_code": "INVALID_PARAMETER_VALUE", "message": message}, 400)
        run["tags"] |= {tag["key"]: tag["value"] for tag in told.get("tags", [])}
        for metric in told.get("metrics", []):
            if not NAMES.fullmatch(metric["key"]) or len(told["metrics"]) > 1000:
                return Said({"error_code": "INVALID_PARAMETER_VALUE", "message": "invalid metrics"}, 400)
            latest = run["metrics"].get(metric["key"], metric)
            run["metrics"][metric["key"]] = max(latest, metric, key=lambda one: (int(one["timestamp"]), one["value"]))
        return Said({})

    def _run(self, run_id):
        run = self.runs[run_id]
        pairs = {
            kind: [{"key": key, "value": value} for key, value in run[kind].items()] for kind in ("tags", "params")
        }
        return {"info": run["info"], "data": {**pairs, "metrics": list(run["metrics"].values())}}
