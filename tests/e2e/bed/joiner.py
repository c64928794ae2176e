"""Makes running instances of the AWS server into Nodes, as a kubelet that boots would; kwok then keeps them Ready.

usage: joiner.py AWS_URL BOOT_SECONDS      KUBECONFIG names a kubeconfig in JSON with certificate files

An instance tagged testbed/boot=never never joins, one tagged testbed/boot=SECONDS after that time. User data of AL2023 (MIME
with a NodeConfig) is obeyed as nodeadm would: kubelet config maxPods, podsPerCore, kubeReserved, systemReserved,
evictionHard and registerWithTaints; flags --node-labels and --register-with-taints.
"""
import base64, email, json, os, re, sys, time
from concurrent.futures import ThreadPoolExecutor

import boto3, requests, yaml

url, boot = sys.argv[1], float(sys.argv[2])
ec2 = boto3.client("ec2", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
with open(os.environ["KUBECONFIG"]) as file:
    conf = json.load(file)
cluster, user = conf["clusters"][0]["cluster"], conf["users"][0]["user"]
nodes = cluster["server"] + "/api/v1/nodes"
kube = requests.Session()
kube.trust_env, kube.cert, kube.verify = False, (user["client-certificate"], user["client-key"]), cluster["certificate-authority"]
kube.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=16))
types, seen, joined = {}, {}, {}

UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def mib(quantity):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(quantity)).groups()
    return int(float(number) * UNITS[unit] / 2**20)


def milli(quantity):
    return int(float(quantity[:-1])) if str(quantity).endswith("m") else int(float(quantity) * 1000)


def facts(name):
    """vCPUs, memory in MiB, pods by network interfaces, architecture."""
    if name not in types:
        described = ec2.describe_instance_types(InstanceTypes=[name])["InstanceTypes"][0]
        network, arch = described["NetworkInfo"], described["ProcessorInfo"]["SupportedArchitectures"][-1]
        pods = network["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2
        types[name] = described["VCpuInfo"]["DefaultVCpus"], described["MemoryInfo"]["SizeInMiB"], pods, {"x86_64": "amd64"}.get(arch, arch)
    return types[name]


def nodeadm(instance):
    """kubelet config and flags of the instance's user data, later parts over earlier ones."""
    raw = ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData").get("UserData", {}).get("Value", "")
    text = base64.b64decode(raw).decode(errors="replace") if raw else ""
    if text and not text.startswith("MIME"):
        again = base64.b64decode(text + "===", validate=False).decode(errors="ignore")
        text = again if "MIME-Version" in again else text
    config, flags = {}, []
    for part in email.message_from_string(text).walk():
        if part.get_content_type() == "application/node.eks.aws":
            kubelet = (yaml.safe_load(part.get_payload(decode=True)) or {}).get("spec", {}).get("kubelet", {})
            config |= kubelet.get("config") or {}
            flags += kubelet.get("flags") or []
    return config, flags


def flagged(flags, name):
    return [x for f in flags if f.startswith(name + "=") for x in f.split("=", 1)[1].strip('"').split(",") if x]


def allocatable(cpu, memory, pods, config):
    """Thousandths of CPU and MiB that are left when kubelet, system and eviction have theirs."""
    reserved, system = config.get("kubeReserved") or {}, config.get("systemReserved") or {}
    curve = [0.06, 0.01, 0.005, 0.005] + [0.0025] * max(0, cpu - 4)
    cpu_kept = milli(reserved["cpu"]) if "cpu" in reserved else int(sum(1000 * share for share in curve[:cpu]))
    memory_kept = mib(reserved["memory"]) if "memory" in reserved else 11 * pods + 255
    evict = str((config.get("evictionHard") or {}).get("memory.available", "100Mi"))
    evict = int(memory * float(evict[:-1]) / 100) if evict.endswith("%") else mib(evict)
    return cpu * 1000 - cpu_kept - milli(system.get("cpu", 0)), memory - memory_kept - mib(system.get("memory", 0)) - evict


def node(instance):
    cpu, listed, pods, arch = facts(instance["InstanceType"])
    memory, zone, name = int(listed * 0.925), instance["Placement"]["AvailabilityZone"], instance["PrivateDnsName"]
    config, flags = nodeadm(instance["InstanceId"])
    pods = config.get("maxPods", pods)
    pods = min(pods, config["podsPerCore"] * cpu) if config.get("podsPerCore") else pods
    cpu_left, memory_left = allocatable(cpu, memory, pods, config)
    labels = dict(x.split("=", 1) for x in flagged(flags, "--node-labels"))
    taints = list(config.get("registerWithTaints") or [])
    for taint in flagged(flags, "--register-with-taints"):
        key, effect = taint.rsplit(":", 1)
        key, _, value = key.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    size = lambda c, m: {"cpu": c, "memory": f"{m}Mi", "pods": str(pods), "ephemeral-storage": "17Gi"}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {
                **labels, "kubernetes.io/hostname": name, "kubernetes.io/arch": arch, "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": instance["InstanceType"], "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": zone[:-1]}},
            "spec": {"providerID": f"aws:///{zone}/{instance['InstanceId']}", "taints": taints},
            "status": {"capacity": size(str(cpu), memory), "allocatable": size(f"{cpu_left}m", memory_left)}}


def join(instance):
    try:
        answer = kube.post(nodes, json=node(instance)).status_code
    except requests.RequestException:
        answer = 0
    if answer in (201, 409):
        joined[instance["InstanceId"]] = instance["PrivateDnsName"]
    print(f"{time.time():.1f} joins {instance['PrivateDnsName']} {instance['InstanceType']} {answer}", flush=True)


def leave(instance):
    name = joined[instance]
    try:
        kube.delete(nodes + "/" + name)
    except requests.RequestException:
        return
    del joined[instance]
    print(f"{time.time():.1f} leaves {name}", flush=True)


def look(pool):
    now, live, ready = time.time(), set(), []
    running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=running):
        for instance in (i for r in page["Reservations"] for i in r["Instances"]):
            known = instance["InstanceId"]
            live.add(known)
            seen.setdefault(known, now)
            wait = next((t["Value"] for t in instance.get("Tags", []) if t["Key"] == "testbed/boot"), boot)
            if known not in joined and wait != "never" and now - seen[known] >= float(wait):
                facts(instance["InstanceType"])
                ready.append(instance)
    list(pool.map(join, ready))
    list(pool.map(leave, [known for known in list(joined) if known not in live]))


with ThreadPoolExecutor(8) as pool:
    while True:
        look(pool)
        time.sleep(0.5)
