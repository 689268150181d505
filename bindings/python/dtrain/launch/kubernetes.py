"""Workers as pods of an Indexed Job of Kubernetes, with a headless service, through which they find each other
(docs/JOINING.md), and a secret, which holds the agent and what it is told. Logs bring what agents report.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import copy
import json
import math
import os
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

from .._checks import check_kind
from .._optional import need
from . import _backend
from ._carrier import AGENT, Carrier, Relay
from ._errors import BackendError, HostError, LaunchError, SendError
from ._plan import Plan
from ._relay import write_all

FOLDER = "/dtrain-launch"  #: where the secret is mounted
LARGEST_SECRET = 1_000_000  #: bytes; Kubernetes takes 1 MiB
POLL = 1.0  #: seconds between two looks at the pods
Manifest = Dict[str, Any]


def manifest(plan: Plan, name: str, image: str, pod: Optional[Mapping[str, Any]] = None,
             marker: str = "@dtrain") -> List[Manifest]:
    """The service, the secret and the job, of a plan (make_plan()). pod: further fields of the pods' spec, such as
    nodeSelector. marker: what reports of agents begin with, in the log."""
    labels = {"app.kubernetes.io/managed-by": "dtrain", "dtrain-job": name}
    told = {**plan.env, "DTRAIN_SIZE": str(plan.workers), "DTRAIN_SERVERS": str(plan.servers)}
    spec = {**plan.spec(patience=None, index_from="JOB_COMPLETION_INDEX"), "env": told}
    data = {"agent.py": base64.b64encode(AGENT).decode(), "spec.json": base64.b64encode(json.dumps(spec).encode()).decode()}
    if sum(map(len, data.values())) > LARGEST_SECRET:
        raise SendError("the function and its arguments are too large for a secret of Kubernetes (1 MiB): put data into "
                        "the image or a volume, and the function into a module of the image")

    def about(kind: str, version: str) -> Manifest:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}}
    container = {
        "name": "worker", "image": image,
        "command": [plan.python, f"{FOLDER}/agent.py", marker, "--spec", f"{FOLDER}/spec.json"],
        "resources": resources(plan),
        "volumeMounts": [{"name": "launch", "mountPath": FOLDER, "readOnly": True}]}
    template = {
        "metadata": {"labels": labels},
        "spec": merged({"subdomain": name, "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
                        "containers": [container],
                        "volumes": [{"name": "launch", "secret": {"secretName": name}}]}, pod or {})}
    return [
        {**about("Service", "v1"), "spec": {"clusterIP": "None", "selector": {"dtrain-job": name},
                                            "publishNotReadyAddresses": True}},
        {**about("Secret", "v1"), "type": "Opaque", "data": data},
        {**about("Job", "batch/v1"), "spec": {
            "completionMode": "Indexed", "completions": plan.members, "parallelism": plan.members,
            "backoffLimitPerIndex": 0,  # the pods that are left stay, with their logs
            "template": template}}]


def resources(plan: Plan) -> Manifest:
    asked: Dict[str, str] = {}
    if plan.cpu is not None:
        asked["cpu"] = f"{math.ceil(plan.cpu * 1000)}m"
    if plan.memory is not None:
        asked["memory"] = str(plan.memory)
    if plan.gpus:
        asked["nvidia.com/gpu"] = str(plan.gpus)
    return {"requests": asked, "limits": asked} if asked else {}


def merged(ours: Manifest, more: Mapping[str, Any]) -> Manifest:
    """More fields; lists are joined, but for containers, whose first is ours."""
    found = copy.deepcopy(ours)
    for key, value in more.items():
        if key == "containers":
            found[key][0] = merged(found[key][0], value[0])
            found[key] += value[1:]
        elif isinstance(value, list):
            found[key] = found.get(key, []) + list(value)
        elif isinstance(value, Mapping):
            found[key] = merged(found.get(key, {}), value)
        else:
            found[key] = value
    return found


class Backend(_backend.Backend):
    """image: has Python, and what workers run. namespace; pod: further fields of the pods' spec. kubeconfig, context:
    which cluster (in a pod: its own); client: an ApiClient instead."""
    name = "kubernetes"
    instead_of_elastic = "let the Job restart its pods, with DTRAIN_ELASTIC=yes in them (docs/ELASTIC.md)"
    python = "python3"
    listens = None
    start_timeout = None  # pods wait for nodes and images

    def __init__(self, image: str, namespace: str = "default", pod: Optional[Mapping[str, Any]] = None,
                 kubeconfig: Optional[str] = None, context: Optional[str] = None, client: Any = None) -> None:
        self.image = check_kind(image, str, "image")
        self.namespace = namespace
        self.pod = pod
        self.kubeconfig, self.context, self.client = kubeconfig, context, client
        self.pods: Dict[int, Any] = {}
        self.changed = threading.Condition()
        self.unwanted: Set[int] = set()  #: workers that are to end
        self.over = False
        self.made: List[Callable[[], Any]] = []  #: what removes what was made

    def check(self, plan: Plan) -> None:
        self.api = need("kubernetes", "backend \"kubernetes\" of dtrain.launch")
        need("kubernetes.client", "backend \"kubernetes\" of dtrain.launch")
        need("kubernetes.config", "backend \"kubernetes\" of dtrain.launch")
        self.errors = (self.api.client.ApiException, need("urllib3", self.name).exceptions.HTTPError)
        if self.client is None:
            self.client = self.connect()

    def connect(self) -> Any:
        config = self.api.config
        try:
            if self.kubeconfig is None and self.context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
                config.load_incluster_config()
                return self.api.client.ApiClient()
            return config.new_client_from_config(self.kubeconfig, self.context)
        except config.ConfigException as error:
            raise BackendError(f"backend \"kubernetes\": no cluster is configured: {error}; give kubeconfig, context or "
                               "client") from error

    def carriers(self, plan: Plan, job: str, marker: str) -> List[Carrier]:
        self.job = f"dtrain-{job}"
        self.core, self.batch = self.api.client.CoreV1Api(self.client), self.api.client.BatchV1Api(self.client)
        kinds = {"Service": (self.core.create_namespaced_service, self.core.delete_namespaced_service),
                 "Secret": (self.core.create_namespaced_secret, self.core.delete_namespaced_secret),
                 "Job": (self.batch.create_namespaced_job, self.delete_job)}
        try:
            for one in manifest(plan, self.job, self.image, self.pod, marker):
                create, delete = kinds[one["kind"]]
                create(self.namespace, one)
                self.made.append(lambda delete=delete: delete(self.job, self.namespace))  # type: ignore[misc]
        except Exception as error:
            self.stopped()
            raise BackendError(f"backend \"kubernetes\": {one['kind']} {self.job} in namespace {self.namespace} could not "
                               f"be made: {text_of(error)}") from error
        threading.Thread(target=self.watch, name="dtrain-pods", daemon=True).start()
        return [Relay([index], lambda left_in, left_out, i=index: self.follow(i, left_in, left_out))  # type: ignore[misc]
                for index in range(plan.members)]

    def delete_job(self, name: str, namespace: str) -> None:
        self.batch.delete_namespaced_job(name, namespace, propagation_policy="Background")

    def watch(self) -> None:
        """Keeps the last state of each pod."""
        while not self.over:
            try:
                found = self.core.list_namespaced_pod(self.namespace, label_selector=f"dtrain-job={self.job}")
                with self.changed:
                    for pod in found.items:
                        notes = {**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}
                        self.pods[int(notes["batch.kubernetes.io/job-completion-index"])] = pod
                    self.changed.notify_all()
            except Exception:  # the API server is away; it comes back, or whoever waits gives up
                pass
            time.sleep(POLL)

    def follow(self, index: int, left_in: int, left_out: int) -> None:
        """The log of a pod, to its end."""
        threading.Thread(target=self.stop_when_told, args=(index, os.dup(left_in)), daemon=True).start()
        seen, said = 0, ""
        while not self.over:
            pod: Any = self.pods.get(index)
            phase = "Pending" if pod is None else pod.status.phase
            if phase == "Pending" and index in self.unwanted:
                break
            if phase == "Pending":
                said = self.say_why(pod, said, left_out)
            else:
                seen += self.read_log(pod.metadata.name, seen, left_out)
                if phase in ("Succeeded", "Failed"):
                    raise self.end_of(pod)
            with self.changed:
                self.changed.wait(POLL)
        raise LaunchError("stopped before its pod had started")

    def read_log(self, name: str, seen: int, left_out: int) -> int:
        """How much more it has brought."""
        brought = 0
        try:
            log = self.core.read_namespaced_pod_log(name, self.namespace, container="worker", follow=True,
                                                    _preload_content=False)
            for data in log.stream():
                brought += len(data)
                fresh = data[max(0, len(data) - max(0, brought - seen)):]
                write_all(left_out, fresh)
        except self.errors:
            pass  # not yet, gone, or the connection broke: what is new comes with the next look
        return max(0, brought - seen)

    @staticmethod
    def say_why(pod: Any, said: str, left_out: int) -> str:
        """Why a pod does not run yet, each reason once."""
        if pod is None:
            return said
        states = [status.state.waiting for status in pod.status.container_statuses or [] if status.state.waiting]
        reasons = [f"{state.reason}: {state.message or ''}" for state in states if state.reason != "ContainerCreating"]
        reasons += [f"{one.reason}: {one.message}" for one in pod.status.conditions or [] if one.status == "False"
                    and one.reason == "Unschedulable"]
        now = "; ".join(reasons)
        if now and now != said:
            write_all(left_out, f"pod {pod.metadata.name} waits: {now}\n".encode())
        return now

    @staticmethod
    def end_of(pod: Any) -> LaunchError:
        ends = [status.state.terminated for status in pod.status.container_statuses or [] if status.state.terminated]
        why = f"{ends[0].reason}, exit status {ends[0].exit_code}" if ends else pod.status.reason or "it has ended"
        return HostError(f"pod {pod.metadata.name}: {why}")

    def stop_when_told(self, index: int, left_in: int) -> None:
        """Deletes the pod when the launcher says so, or has ended."""
        pending = b""
        while True:
            data = os.read(left_in, 1 << 16)
            *lines, pending = (pending + data).split(b"\n")
            if not data or any(line in (b"stop", b"stop %d" % index) for line in lines):
                break
        os.close(left_in)
        with self.changed:
            self.unwanted.add(index)
            self.changed.notify_all()
        pod = self.pods.get(index)
        if pod is not None and pod.status.phase == "Running" and not self.over:
            try:
                self.core.delete_namespaced_pod(pod.metadata.name, self.namespace, grace_period_seconds=5)
            except self.errors:
                pass  # it is gone, or goes with its job

    def stopped(self) -> None:
        self.over = True
        with self.changed:
            self.changed.notify_all()
        for remove in reversed(self.made):
            try:
                remove()
            except self.api.client.ApiException as error:
                if error.status != 404:
                    raise
        self.made = []


def text_of(error: BaseException) -> str:
    """What the API server has answered."""
    try:
        return str(json.loads(getattr(error, "body", "") or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error)
