"""Asks Helm, and the schemas of Kubernetes, about a chart: one request in, as JSON; one answer out."""

import json
import sys

import helm_python as helm
import kubernetes_validate
import yaml


def documents(manifests):
    for path, text in manifests.items():
        if not path.endswith("NOTES.txt"):
            for document in yaml.safe_load_all(text):
                if document is not None:
                    yield document


def faults_of(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{document['kind']}: {'.'.join(map(str, error.path))}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError:
        return [f"{document['kind']}: no schema"]
    return []


def render(chart, request):
    try:
        # What an install does first.
        chart.validate_schema(request["values"])
        manifests = chart.render(request["values"], name=request["name"], namespace=request["namespace"])
    except helm.HelmError as error:
        return {"error": str(error)}
    found = list(documents(manifests))
    return {
        "documents": found,
        "notes": next((text for path, text in manifests.items() if path.endswith("NOTES.txt")), ""),
        "faults": [fault for one in found for version in request["versions"] for fault in faults_of(one, version)],
    }


requests = json.loads(sys.argv[1])
with helm.Chart.load(requests["chart"]) as chart:
    answer = {
        "lint": helm.lint(requests["chart"], requests["lintWith"], strict=True),
        "rendered": [render(chart, request) for request in requests["requests"]],
    }
json.dump(answer, sys.stdout)
