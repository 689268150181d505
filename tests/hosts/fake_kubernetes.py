"""An API server that knows services, secrets, Indexed Jobs and pods, as far as dtrain.launch uses them. It checks
what it gets against Kubernetes' published schemas, and runs pods as processes of this machine.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kubernetes_validate

VERSION = "1.32"
PLURALS = {"Service": "services", "Secret": "secrets", "Job": "jobs", "Pod": "pods"}


def validate(manifest):
    """Raises an error that says what Kubernetes would not take."""
    kubernetes_validate.validate(manifest, VERSION, strict=True)


class Pod:
    """A pod of an Indexed Job. A process whose paths lead to a folder instead of the mounted secret."""

    def __init__(self, job, index, folder, start):
        self.job, self.index, self.folder = job, index, folder
        self.name = f"{job['metadata']['name']}-{index}-x7k2p"
        self.log = folder / f"{index}.log"
        self.process = None
        self.reason = "" if start else "the test keeps it so"
        if start:
            self.start()

    def start(self):
        (container,) = self.job["spec"]["template"]["spec"]["containers"]
        mount = container["volumeMounts"][0]["mountPath"]
        command = [part.replace(mount, str(self.folder)) for part in container["command"]]
        environment = {**os.environ, "JOB_COMPLETION_INDEX": str(self.index),
                       "HOSTNAME": f"{self.job['metadata']['name']}-{self.index}"}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def phase(self):
        if self.process is None:
            return "Pending"
        status = self.process.poll()
        return "Running" if status is None else "Failed" if status else "Succeeded"

    def status(self):
        phase = self.phase()
        state = {"Pending": {"waiting": {"reason": "ImagePullBackOff", "message": self.reason}},
                 "Running": {"running": {}}}.get(phase)
        if state is None:
            code = self.process.returncode
            state = {"terminated": {"exitCode": code if code >= 0 else 128 - code,
                                    "reason": "Error" if code else "Completed"}}
        return {"phase": phase, "containerStatuses": [{
            "name": "worker", "image": "image", "imageID": "", "ready": phase == "Running", "restartCount": 0, "state": state}]}

    def describe(self):
        labels = {**self.job["spec"]["template"]["metadata"]["labels"],
                  "batch.kubernetes.io/job-completion-index": str(self.index)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name, "labels": labels},
                "spec": {"containers": [{"name": "worker"}]}, "status": self.status()}

    def end(self, number=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class Cluster:
    """with Cluster() as cluster: cluster.url is the API server's. starts: whether pods leave the state Pending."""

    def __init__(self, starts=True):
        self.starts = starts
        self.objects = {}  # {(plural, name): manifest}
        self.pods = {}
        self.deleted = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-kubernetes-"))

    def __enter__(self):
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def refuse(self, status, text):
                self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": text, "code": status})

            def parts(self):
                """(plural, name, subresource)"""
                found = re.search(r"/namespaces/default/(\w+)(?:/([\w.-]+))?(?:/(\w+))?", self.path)
                return found.groups() if found else (None, None, None)

            def do_POST(self):
                manifest = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                plural, _, _ = self.parts()
                try:
                    validate(manifest)
                    assert PLURALS[manifest["kind"]] == plural
                except Exception as error:  # the client's
                    return self.refuse(422, f"invalid: {error}")
                if not cluster.create(plural, manifest):
                    return self.refuse(409, f"{plural} \"{manifest['metadata']['name']}\" already exists")
                self.answer(201, manifest)

            def do_GET(self):
                plural, name, subresource = self.parts()
                if plural == "pods" and name is None:
                    items = [pod.describe() for pod in cluster.pods.values()]
                    return self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
                if plural == "pods" and subresource == "log" and name in cluster.pods:
                    return self.follow(cluster.pods[name])
                self.refuse(404, f"{self.path} not found")

            def follow(self, pod):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                with open(pod.log, "rb") as log:
                    while True:
                        ended = pod.phase() != "Running"
                        data = log.read()
                        if data:
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                        if ended:
                            break
                        time.sleep(0.05)
                self.wfile.write(b"0\r\n\r\n")

            def do_DELETE(self):
                plural, name, _ = self.parts()
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                gone = cluster.delete(plural, name)
                if gone is None:
                    return self.refuse(404, f"{plural} \"{name}\" not found")
                whole = plural in ("pods", "services")  # as the real one answers
                self.answer(200, gone if whole else {"kind": "Status", "apiVersion": "v1", "status": "Success"})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        return self

    def create(self, plural, manifest):
        name = manifest["metadata"]["name"]
        if (plural, name) in self.objects:
            return False
        self.objects[plural, name] = manifest
        if plural == "secrets":
            for file, data in manifest["data"].items():
                (self.folder / file).write_bytes(base64.b64decode(data))
        if plural == "jobs":
            for index in range(manifest["spec"]["completions"]):
                pod = Pod(manifest, index, self.folder, self.starts)
                self.pods[pod.name] = pod
        return True

    def delete(self, plural, name):
        if plural == "pods" and name in self.pods:
            self.pods[name].end()
            return self.pods[name].describe()
        self.deleted.append((plural, name))
        if plural == "jobs":
            for pod in self.pods.values():
                pod.end()
        return self.objects.pop((plural, name), None)

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        for pod in self.pods.values():
            pod.end(signal.SIGKILL)
            if pod.process is not None:
                pod.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
