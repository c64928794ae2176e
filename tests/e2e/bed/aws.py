"""The AWS side of the test bed: moto with prices, capacity, faults, client tokens, and the calls it lacks.

usage: aws.py PORT ON_DEMAND_CSV

POST /_ctl steers it and answers with what it holds:
  ice     [[capacity type, instance type, zone]...]  sold out from now on (all three may be "*")
  faults  [{action, n, code, status, delay}...]      the next n calls of an action are slow or refused
  reserve {id: [instance type, zone, instances]}     capacity reservations there are from now on
  ssm     {name: value}                              parameters nobody may write through the API
  end     [instance id...]                           instances end from outside
  send    [queue, body]                              a message on a queue, as EventBridge sends it
  zero    true                                       forget the calls counted so far
  record  true                                       answer with the controller's calls so far, each once, as IAM would be asked about them
  show    true                                       answer with instances, launch templates, and the number of queued messages
"""
import base64, csv, io, json, re, sys, threading, time
from urllib.parse import parse_qsl

from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.fleets import Fleet
from moto.ec2.responses.fleets import Fleets
from moto.ec2.responses.spot_instances import SpotInstances
from moto.ec2.utils import convert_tag_spec
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.sqs.models import sqs_backends
from moto.ssm.models import Parameter, ssm_backends
from werkzeug.serving import run_simple

REGION = "us-east-1"
with open(sys.argv[2]) as table:
    ON_DEMAND = {r["instance_type"]: int(r["micro_usd_per_hour"]) / 1e6 for r in csv.DictReader(table) if r["region"] == REGION}
SOLD_OUT, FAULTS, CALLS, ANSWERS, FLEETS, TOKENS = set(), [], {}, {}, [], {}
RECORDS, RESERVATIONS = {}, {}
FLEET_LOCK = threading.Lock()


def price(capacity_type, instance_type, zone):
    share = 1 if capacity_type == "on-demand" else 0.30 + 0.01 * (sum(map(ord, instance_type + zone)) % 20)
    return ON_DEMAND.get(instance_type, 99.0) * share


def sold_out(*pool):
    return any(all(said in ("*", is_) for said, is_ in zip(rule, pool)) for rule in SOLD_OUT)


def pick(fleet, spot):
    """The pool a fleet gets: the cheapest, or the first by priority, of those not sold out."""
    capacity_type = "spot" if spot else "on-demand"
    options = (fleet.spot_options if spot else fleet.on_demand_options) or {}
    zone = lambda spec: fleet.ec2_backend.get_subnet(spec.subnet_id).availability_zone
    fleet.refused = [s for s in fleet.launch_specs if sold_out(capacity_type, s.instance_type, zone(s))]
    left = [s for s in fleet.launch_specs if s not in fleet.refused]
    by_priority = "prioritized" in options.get("AllocationStrategy", "")
    rank = lambda s: float(s.overrides.get("Priority", 1e9)) if by_priority else price(capacity_type, s.instance_type, zone(s))
    return min(left, key=rank, default=None)


def free(reservation):
    """How many instances more a capacity reservation holds."""
    everywhere = (i for r in ec2_backends[ACCOUNT][REGION].reservations.values() for i in r.instances)
    inside = [i for i in everywhere if getattr(i, "capacity_reservation_id", None) == reservation and i.state in ("pending", "running")]
    return RESERVATIONS.get(reservation, ("", "", 0))[2] - len(inside)


def launch(fleet, count, spot):
    spec = pick(fleet, spot)
    if spec is None:
        return
    named, backend = spec.launch_template_spec, fleet.ec2_backend
    by_id = named.get("LaunchTemplateId")
    template = backend.get_launch_template(by_id) if by_id else backend.get_launch_template_by_name(named["LaunchTemplateName"])
    version = str(named.get("Version", "$Default"))
    version = template.default_version() if version.startswith("$") else template.get_version(version)
    data = version.data
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    reservation = target.get("CapacityReservationId")
    if reservation and free(reservation) < count:
        fleet.refused, fleet.refused_code = [spec], "ReservationCapacityExceeded"
        return
    groups = list(data.get("SecurityGroupIds", [])) or [
        g for nic in data.get("NetworkInterfaces") or [] for g in nic.get("Groups", nic.get("SecurityGroupId", []))]
    started = backend.run_instances(
        image_id=spec.image_id, count=int(count), user_data=spec.user_data, security_group_names=[], instance_type=spec.instance_type,
        is_instance_type_default=False, placement=None, subnet_id=spec.subnet_id, key_name=None, kernel_id=None, ramdisk_id=None,
        monitoring_enabled=None, tags=spec.tag_specifications, fleet_id=fleet.id, security_group_ids=groups,
        metadata_options=data.get("MetadataOptions", {}), launch_template={"LaunchTemplateId": template.id, "Version": str(version.number)},
        **({"instance_market_options": {"MarketType": "spot"}} if spot else {}))
    for instance in started.instances:
        instance.capacity_reservation_id = reservation
    fleet.on_demand_instances += [{"id": started.id, "instance": i, "launch_spec": spec, "spot": spot} for i in started.instances]
    fleet.fulfilled_capacity += count


Fleet.create_on_demand_requests = lambda self, count: launch(self, count, False)
Fleet.create_spot_requests = lambda self, count: launch(self, count, True)
stock_create_fleet, stock_spot_history = Fleets.create_fleet, SpotInstances.describe_spot_price_history


def create_fleet(self):
    """Stock CreateFleet, once for each client token, with what it leaves out of its answer and of tags."""
    token = self._get_param("ClientToken")
    asked = {k: v for k, v in self.querystring.items() if not k.startswith("X-Amz")}
    with FLEET_LOCK:
        if token in TOKENS:
            return TOKENS[token][1] if TOKENS[token][0] == asked else mismatch()
        answer = answer_fleet(self)
        if token:
            TOKENS[token] = (asked, answer)
        return answer


def mismatch():
    from moto.core.exceptions import ServiceException
    error = ServiceException("the client token was used with other parameters")
    error.code = "IdempotentParameterMismatch"
    raise error


def answer_fleet(self):
    answer = stock_create_fleet(self)
    fleet = self.ec2_backend.fleets.get(answer.result.get("FleetId"))
    if fleet is None:
        return answer
    wanted = convert_tag_spec(self._get_param("TagSpecifications", []))
    for told, held in zip(answer.result.get("Instances", []), fleet.on_demand_instances):
        told["Lifecycle"] = "spot" if held["spot"] else "on-demand"
        instance, template = held["instance"], held["launch_spec"].tag_specifications or {}
        volumes, nics = [b.volume_id for b in instance.block_device_mapping.values()], [n.id for n in instance.nics.values()]
        for ids, kind in ((volumes, "volume"), (nics, "network-interface")):
            tags = {**template.get(kind, {}), **wanted.get(kind, {})}
            if ids and tags:
                self.ec2_backend.create_tags(ids, tags)
    answer.result["Errors"] = [
        {"ErrorCode": getattr(fleet, "refused_code", "InsufficientInstanceCapacity"), "ErrorMessage": "no capacity",
         "LaunchTemplateAndOverrides": {"LaunchTemplateSpecification": s.launch_template_spec, "Overrides": s.overrides or {}}}
        for s in getattr(fleet, "refused", [])]
    FLEETS.append({"instances": [h["instance"].id for h in fleet.on_demand_instances], "refused": len(answer.result["Errors"]),
                   "offered": sorted({s.instance_type for s in fleet.launch_specs})})
    return answer


def spot_history(self):
    answer = stock_spot_history(self)
    for row in answer.result["SpotPriceHistory"]:
        row.update(SpotPrice=f"{price('spot', row['InstanceType'], row['AvailabilityZone']):.6f}", Timestamp=utcnow(), ProductDescription="Linux/UNIX")
    return answer


Fleets.create_fleet, SpotInstances.describe_spot_price_history = create_fleet, spot_history


def put_ssm(name, value):
    ssm_backends[ACCOUNT][REGION]._parameters[name].append(Parameter(
        account_id=ACCOUNT, name=name, value=value, parameter_type="String", description=None, allowed_pattern=None, keyid=None,
        last_modified_date=utcnow(), version=1, data_type="text"))


def plain(data):
    """User data as its author wrote it: templates hold it in base64, some tools twice."""
    text = data.decode() if hasattr(data, "decode") else data or ""
    for _ in range(2):
        try:
            text = base64.b64decode(text, validate=True).decode()
        except ValueError:
            break
    return text


def tags_of(resource):
    return {t["key"]: t["value"] for t in resource.get_tags()}


def steady(read, *args):
    """What is read while other threads change it is read again."""
    for _ in range(100):
        try:
            return read(*args)
        except RuntimeError as error:
            if "during iteration" not in str(error):
                raise
    raise RuntimeError(f"{read.__name__}: it never holds still")


def show():
    ec2 = ec2_backends[ACCOUNT][REGION]
    instances = [{
        "id": i.id, "type": i.instance_type, "zone": i.availability_zone,
        "state": i.state, "spot": i.lifecycle == "spot", "reservation": getattr(i, "capacity_reservation_id", None),
        "price": round(1e6 * price("spot" if i.lifecycle == "spot" else "on-demand", i.instance_type, i.availability_zone)), "image": i.image_id, "subnet": i.subnet_id, "name": i.private_dns_name,
        "tags": tags_of(i), "groups": sorted(g.id for g in i.security_groups), "user_data": plain(i.user_data),
        "volumes": [tags_of(ec2.volumes[b.volume_id]) for b in i.block_device_mapping.values() if b.volume_id in ec2.volumes],
    } for r in ec2.reservations.values() for i in r.instances]
    templates = [{"id": t.id, "name": t.name, "tags": tags_of(t), "data": {**t.latest_version().data, "UserData": plain(t.latest_version().data.get("UserData"))}}
                 for t in ec2.launch_templates.values()]
    queued = sum(len(queue._messages) for queue in sqs_backends[ACCOUNT][REGION].queues.values())
    return {"instances": instances, "templates": templates, "fleets": list(FLEETS), "queued": queued}


def resources_of(params):
    """What a call names and is there already: tags, and of launch templates what they ask for."""
    ec2, found = ec2_backends[ACCOUNT][REGION], {}
    instances = {i.id: i for r in ec2.reservations.values() for i in r.instances}
    templates = {key: t for t in ec2.launch_templates.values() for key in (t.id, t.name)}
    profiles = {p.name: p for p in iam_backends[ACCOUNT]["aws"].instance_profiles.values()}
    for value in set(params.values()):
        if value in instances:
            found[value] = {"kind": "instance", "tags": tags_of(instances[value])}
        elif value in templates:
            data = templates[value].latest_version().data
            specs = data.get("TagSpecifications") or data.get("TagSpecification") or []
            profile = (data.get("IamInstanceProfile") or {}).get("Name")
            roles = [role.name for role in profiles[profile].roles] if profile in profiles else []
            found[value] = {"kind": "launch-template", "id": templates[value].id, "tags": tags_of(templates[value]), "roles": roles,
                            "specs": [{"type": spec["ResourceType"], "tags": {t["Key"]: t["Value"] for t in spec.get("Tags") or spec.get("Tag") or []}} for spec in specs]}
        elif value in profiles:
            found[value] = {"kind": "instance-profile", "tags": {t["Key"]: t["Value"] for t in profiles[value].tags or []}}
    return found


def record(env, action, body):
    """Notes a call of the controller: service and region it was signed for, action, parameters, resources as they were."""
    signed = re.search(r"Credential=[^/]+/\d+/([\w-]+)/([\w-]+)/", env.get("HTTP_AUTHORIZATION", ""))
    if "aws-sdk-rust" not in env.get("HTTP_USER_AGENT", "") or not signed:
        return
    if env.get("HTTP_X_AMZ_TARGET"):
        params = {k: v for k, v in json.loads(body or b"{}").items() if isinstance(v, str)}
    else:
        params = dict(parse_qsl(body.decode(errors="replace")))
    told = {"service": signed[2], "region": signed[1], "action": action.rsplit(".", 1)[-1], "path": env["PATH_INFO"], "params": params}
    told["params"].pop("ClientToken", None)
    told["resources"] = steady(resources_of, params)
    RECORDS[json.dumps(told, sort_keys=True, default=str)] = told


EMPTY = {"DescribePlacementGroups": "placementGroupSet", "DescribeInstanceTopology": "instanceSet"}
CACHED = ("DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory")
app = DomainDispatcherApplication(create_backend_app)
app.debug = True


def control(told):
    if "ice" in told:
        SOLD_OUT.clear()
        SOLD_OUT.update(map(tuple, told["ice"]))
    if "reserve" in told:
        RESERVATIONS.clear()
        RESERVATIONS.update(told["reserve"])
    if "faults" in told:
        FAULTS[:] = told["faults"]
    for name, value in told.get("ssm", {}).items():
        put_ssm(name, value)
    if told.get("end"):
        ec2_backends[ACCOUNT][REGION].terminate_instances(told["end"])
    if told.get("send"):
        sqs_backends[ACCOUNT][REGION].send_message(*told["send"])
    if told.get("zero"):
        CALLS.clear()
        FLEETS.clear()
    records = list(RECORDS.values()) if told.get("record") else []
    if told.get("record"):
        RECORDS.clear()
    return {"calls": dict(CALLS), "records": records, **(steady(show) if told.get("show") else {})}


def refusal(start, status, code):
    start(status, [("content-type", "text/xml")])
    return [f"<Response><Errors><Error><Code>{code}</Code><Message>injected</Message></Error></Errors><RequestID>r</RequestID></Response>".encode()]


def price_list(start):
    start("200 OK", [("content-type", "application/x-amz-json-1.1")])
    terms = lambda usd: {"OnDemand": {"x": {"priceDimensions": {"y": {"pricePerUnit": {"USD": str(usd)}}}}}}
    items = [json.dumps({"product": {"attributes": {"instanceType": t}}, "terms": terms(usd)}) for t, usd in ON_DEMAND.items()]
    return [json.dumps({"FormatVersion": "aws_v1", "PriceList": items}).encode()]


def reservations(start):
    start("200 OK", [("content-type", "text/xml")])
    item = lambda id, of_type, zone, count: f"<item><capacityReservationId>{id}</capacityReservationId><ownerId>{ACCOUNT}</ownerId>" \
        f"<instanceType>{of_type}</instanceType><availabilityZone>{zone}</availabilityZone><state>active</state>" \
        f"<totalInstanceCount>{count}</totalInstanceCount><availableInstanceCount>{max(0, free(id))}</availableInstanceCount>" \
        f"<instanceMatchCriteria>targeted</instanceMatchCriteria></item>"
    items = "".join(item(id, *held) for id, held in RESERVATIONS.items())
    return [f'<DescribeCapacityReservationsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>'
            f"<capacityReservationSet>{items}</capacityReservationSet></DescribeCapacityReservationsResponse>".encode()]


def remembered(env, start, body):
    """Answers that take moto seconds and never change."""
    key = re.sub(rb"X-Amz[^&]*", b"", body)
    if key not in ANSWERS:
        head = []
        out = b"".join(app(env, lambda status, headers, _=None: head.extend((status, headers))))
        ANSWERS[key] = (head, out)
    head, out = ANSWERS[key]
    start(*head)
    return [out]


def middleware(env, start):
    body = env["wsgi.input"].read(int(env.get("CONTENT_LENGTH") or 0))
    env["wsgi.input"] = io.BytesIO(body)
    if env["PATH_INFO"] == "/_ctl":
        answer = json.dumps(control(json.loads(body or b"{}")), default=str).encode()
        start("200 OK", [("content-type", "application/json")])
        return [answer]
    found = re.search(rb"(?:^|&)Action=(\w+)", body)
    action = env.get("HTTP_X_AMZ_TARGET") or (found[1].decode() if found else env["PATH_INFO"])
    CALLS[action] = CALLS.get(action, 0) + 1
    record(env, action, body)
    for fault in FAULTS:
        if fault["action"] == action and fault["n"] > 0:
            fault["n"] -= 1
            time.sleep(fault.get("delay", 0))
            if "code" in fault:
                return refusal(start, fault.get("status", "503 Service Unavailable"), fault["code"])
    if action in EMPTY:
        start("200 OK", [("content-type", "text/xml")])
        return [f'<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><{EMPTY[action]}/></{action}Response>'.encode()]
    if action == "DescribeCapacityReservations":
        return steady(reservations, start)
    if action == "AWSPriceListService.GetProducts":
        return price_list(start)
    return remembered(env, start, body) if action in CACHED else app(env, start)


run_simple("127.0.0.1", int(sys.argv[1]), middleware, threaded=True, request_handler=MotoRequestHandler)
