//! An EC2 that remembers what it was asked.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
    sync::{Arc, Mutex},
    time::Instant,
};

use super::server::{Reply, Request, serve};

pub type Params = BTreeMap<String, String>;

/// What goes wrong with the next call of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Refused with this code.
    Refused(&'static str),
    /// Carried out, and the answer is lost.
    AnswerLost,
    /// Not carried out, and there is no answer.
    RequestLost,
}

#[derive(Debug, Clone)]
pub struct Machine {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    pub spot: bool,
    /// The capacity reservation it runs in.
    pub reservation: Option<String>,
    pub state: &'static str,
    pub tags: BTreeMap<String, String>,
    /// Readings that do not show it yet.
    pub hidden: u32,
}

/// One override of a fleet.
struct Pick {
    priority: f64,
    of_type: String,
    zone: String,
    subnet: String,
    template: String,
}

#[derive(Debug, Default)]
pub struct State {
    pub calls: Vec<(String, Params)>,
    pub machines: Vec<Machine>,
    pub templates: BTreeMap<String, Params>,
    pub faults: Vec<(&'static str, Fault)>,
    /// `spot m5.large a` and the code it is refused with.
    pub sold_out: BTreeMap<String, &'static str>,
    /// Instances that can still be bought; `None` is no limit.
    pub stock: Option<usize>,
    /// Readings that do not show a new instance.
    pub hidden: u32,
    /// The open capacity reservation that instances which name none run in.
    pub open_reservation: Option<String>,
    /// Instances that may not be ended.
    pub protected: BTreeSet<String>,
    /// Burst and tokens a second of each action.
    pub buckets: HashMap<&'static str, (f64, f64)>,
    levels: HashMap<String, (f64, Instant)>,
    tokens: BTreeMap<String, (Params, String)>,
    launched: u32,
}

/// The EC2 and its address.
#[derive(Debug, Clone)]
pub struct Ec2 {
    pub url: String,
    state: Arc<Mutex<State>>,
}

impl Ec2 {
    pub fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = state.clone();
        let url = serve(move |request| shared.lock().unwrap().answer(request));
        Self { url, state }
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// Calls of this action, oldest first.
    pub fn calls(&self, action: &str) -> Vec<Params> {
        self.with(|state| state.calls.iter().filter(|(a, _)| a == action).map(|(_, params)| params.clone()).collect())
    }

    pub fn count(&self, action: &str) -> usize {
        self.calls(action).len()
    }

    pub fn running(&self) -> Vec<Machine> {
        self.with(|state| state.machines.iter().filter(|m| m.state == "running").cloned().collect())
    }

    pub fn fail(&self, action: &'static str, fault: Fault) {
        self.with(|state| state.faults.push((action, fault)));
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Reply {
        let params = decode(&request.body);
        let action = params.get("Action").cloned().unwrap_or_default();
        self.calls.push((action.clone(), params.clone()));
        if !self.admits(&action) {
            return refused("RequestLimitExceeded", "Request limit exceeded.");
        }
        let fault = self.faults.iter().position(|(of, _)| *of == action).map(|at| self.faults.remove(at).1);
        match fault {
            Some(Fault::Refused(code)) => return refused(code, "as the test wants it"),
            Some(Fault::RequestLost) => return Reply::Broken,
            Some(Fault::AnswerLost) | None => {}
        }
        let reply = match action.as_str() {
            "DescribeLaunchTemplates" => self.describe_templates(&params),
            "CreateLaunchTemplate" => self.create_template(&params),
            "DeleteLaunchTemplate" => self.delete_template(&params),
            "CreateFleet" => self.create_fleet(&params),
            "DescribeInstances" => self.describe_instances(&params),
            "TerminateInstances" => self.terminate(&params),
            "CreateTags" => self.tag(&params),
            _ => refused("InvalidAction", "not in this EC2"),
        };
        if fault == Some(Fault::AnswerLost) { Reply::Broken } else { reply }
    }

    fn admits(&mut self, action: &str) -> bool {
        let Some((burst, refill)) = self.buckets.get(action).copied() else { return true };
        let (level, filled) = self.levels.entry(action.to_owned()).or_insert((burst, Instant::now()));
        *level = (*level + filled.elapsed().as_secs_f64() * refill).min(burst);
        *filled = Instant::now();
        if *level < 1.0 {
            return false;
        }
        *level -= 1.0;
        true
    }

    fn describe_templates(&self, params: &Params) -> Reply {
        let names = filter(params, "launch-template-name");
        let shown = |(name, template): &(&String, &Params)| match &names {
            Some(names) => names.contains(*name),
            None => filters(params).iter().all(|(key, values)| {
                let tags = tags(template, "launch-template");
                match key.strip_prefix("tag:") {
                    Some(key) => tags.get(key).is_some_and(|value| values.contains(value)),
                    None => values.iter().any(|key| tags.contains_key(key)),
                }
            }),
        };
        let items: Vec<String> = self
            .templates
            .iter()
            .filter(shown)
            .map(|(name, _)| format!("<item><launchTemplateName>{name}</launchTemplateName></item>"))
            .collect();
        answered("DescribeLaunchTemplates", &format!("<launchTemplates>{}</launchTemplates>", items.concat()))
    }

    fn create_template(&mut self, params: &Params) -> Reply {
        let name = params["LaunchTemplateName"].clone();
        if self.templates.contains_key(&name) {
            return refused("InvalidLaunchTemplateName.AlreadyExistsException", "it exists");
        }
        self.templates.insert(name, params.clone());
        answered("CreateLaunchTemplate", "")
    }

    fn delete_template(&mut self, params: &Params) -> Reply {
        match self.templates.remove(&params["LaunchTemplateName"]) {
            Some(_) => answered("DeleteLaunchTemplate", ""),
            None => refused("InvalidLaunchTemplateName.NotFoundException", "it does not exist"),
        }
    }

    /// Buys the first override that is for sale, as often as it is asked for; the same token is the same answer.
    fn create_fleet(&mut self, params: &Params) -> Reply {
        let token = params["ClientToken"].clone();
        let mut content = params.clone();
        content.remove("ClientToken");
        if let Some((same, answer)) = self.tokens.get(&token) {
            let reply = answered("CreateFleet", answer);
            return if *same == content { reply } else { refused("IdempotentParameterMismatch", "another request had this token") };
        }
        let spot = params["TargetCapacitySpecification.DefaultTargetCapacityType"] == "spot";
        let (mut picks, mut missing) = (Vec::new(), 0);
        for config in (1..).take_while(|n| params.contains_key(&template_key(*n))) {
            if !self.templates.contains_key(&params[&template_key(config)]) {
                missing += 1;
            }
            for n in (1..).take_while(|n| params.contains_key(&format!("LaunchTemplateConfigs.{config}.Overrides.{n}.InstanceType"))) {
                let of = |field: &str| params[&format!("LaunchTemplateConfigs.{config}.Overrides.{n}.{field}")].clone();
                let template = params[&template_key(config)].clone();
                picks.push(Pick {
                    priority: of("Priority").parse().unwrap(),
                    of_type: of("InstanceType"),
                    zone: of("AvailabilityZone"),
                    subnet: of("SubnetId"),
                    template,
                });
            }
        }
        if missing > 0 {
            return refused("InvalidLaunchTemplateName.NotFoundException", "a template does not exist");
        }
        picks.sort_by(|a, b| a.priority.total_cmp(&b.priority));
        let body = self.buy(params, spot, &picks);
        self.tokens.insert(token, (content, body.clone()));
        answered("CreateFleet", &body)
    }

    fn buy(&mut self, params: &Params, spot: bool, picks: &[Pick]) -> String {
        let lifecycle = if spot { "spot" } else { "on-demand" };
        let wanted: usize = params["TargetCapacitySpecification.TotalTargetCapacity"].parse().unwrap();
        let mut errors = String::new();
        let mut bought = String::new();
        for Pick { of_type: instance_type, zone, subnet, template, .. } in picks {
            let overrides = format!(
                "<launchTemplateAndOverrides><overrides><instanceType>{instance_type}</instanceType><subnetId>{subnet}</subnetId><availabilityZone>{zone}</availabilityZone></overrides></launchTemplateAndOverrides>"
            );
            if let Some(code) = self.sold_out.get(&format!("{lifecycle} {instance_type} {zone}")) {
                write!(errors, "<item>{overrides}<errorCode>{code}</errorCode><errorMessage>as the test wants it</errorMessage></item>")
                    .unwrap();
                continue;
            }
            let count = wanted.min(self.stock.unwrap_or(usize::MAX));
            if count < wanted {
                write!(
                    errors,
                    "<item>{overrides}<errorCode>InsufficientInstanceCapacity</errorCode><errorMessage>no more</errorMessage></item>"
                )
                .unwrap();
            }
            self.stock = self.stock.map(|stock| stock - count);
            let target = "LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId";
            let named = self.templates[template].get(target).cloned();
            let reservation = named.or_else(|| self.open_reservation.clone());
            let mut machine = || self.machine(instance_type, zone, spot, reservation.clone(), params);
            let ids: String = (0..count).map(|_| machine()).map(|id| format!("<item>{id}</item>")).collect();
            if count > 0 {
                write!(bought, "<item>{overrides}<lifecycle>{lifecycle}</lifecycle><instanceIds>{ids}</instanceIds><instanceType>{instance_type}</instanceType></item>").unwrap();
            }
            break;
        }
        format!("<fleetId>fleet-1</fleetId><errorSet>{errors}</errorSet><fleetInstanceSet>{bought}</fleetInstanceSet>")
    }

    fn machine(&mut self, instance_type: &str, zone: &str, spot: bool, reservation: Option<String>, params: &Params) -> String {
        self.launched += 1;
        let id = format!("i-{:04}", self.launched);
        self.machines.push(Machine {
            id: id.clone(),
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            spot,
            reservation,
            state: "running",
            tags: tags(params, "instance"),
            hidden: self.hidden,
        });
        id
    }

    fn describe_instances(&mut self, params: &Params) -> Reply {
        let filters = filters(params);
        let passes = |machine: &Machine| {
            filters.iter().all(|(key, values)| match key.as_str() {
                "instance-id" => values.contains(&machine.id),
                "instance-state-name" => values.iter().any(|value| value == machine.state),
                "tag-key" => values.iter().any(|value| machine.tags.contains_key(value)),
                key => machine.tags.get(key.strip_prefix("tag:").unwrap()).is_some_and(|value| values.contains(value)),
            })
        };
        let mut items = String::new();
        for machine in self.machines.iter_mut().filter(|machine| passes(machine)) {
            if machine.hidden > 0 {
                machine.hidden -= 1;
                continue;
            }
            let tags: String = machine.tags.iter().map(|(k, v)| format!("<item><key>{k}</key><value>{v}</value></item>")).collect();
            let held = machine.reservation.iter().map(|id| format!("<capacityReservationId>{id}</capacityReservationId>"));
            let held: String = held.collect();
            let lifecycle = if machine.spot { "<instanceLifecycle>spot</instanceLifecycle>" } else { "" };
            write!(
                items,
                "<item><instanceId>{}</instanceId><imageId>ami-1</imageId><instanceType>{}</instanceType>{lifecycle}{held}<instanceState><name>{}</name></instanceState><placement><availabilityZone>{}</availabilityZone></placement><launchTime>2026-01-01T00:00:00.000Z</launchTime><groupSet><item><groupId>sg-1</groupId></item></groupSet><tagSet>{tags}</tagSet></item>",
                machine.id, machine.instance_type, machine.state, machine.zone
            )
            .unwrap();
        }
        answered("DescribeInstances", &format!("<reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>"))
    }

    fn terminate(&mut self, params: &Params) -> Reply {
        let ids = list(params, "InstanceId");
        let unknown: Vec<&str> = ids.iter().filter(|id| !self.machines.iter().any(|m| m.id == **id)).map(String::as_str).collect();
        if !unknown.is_empty() {
            return refused("InvalidInstanceID.NotFound", &format!("The instance IDs '{}' do not exist", unknown.join(", ")));
        }
        if ids.iter().any(|id| self.protected.contains(id)) {
            return refused("OperationNotPermitted", "termination protection");
        }
        let mut items = String::new();
        for machine in self.machines.iter_mut().filter(|machine| ids.contains(&machine.id)) {
            machine.state = if machine.state == "running" { "shutting-down" } else { "terminated" };
            write!(
                items,
                "<item><instanceId>{}</instanceId><currentState><name>{}</name></currentState></item>",
                machine.id, machine.state
            )
            .unwrap();
        }
        answered("TerminateInstances", &format!("<instancesSet>{items}</instancesSet>"))
    }

    fn tag(&mut self, params: &Params) -> Reply {
        let ids = list(params, "ResourceId");
        let tags: Vec<(String, String)> = (1..)
            .take_while(|n| params.contains_key(&format!("Tag.{n}.Key")))
            .map(|n| (params[&format!("Tag.{n}.Key")].clone(), params[&format!("Tag.{n}.Value")].clone()))
            .collect();
        for machine in self.machines.iter_mut().filter(|machine| ids.contains(&machine.id)) {
            machine.tags.extend(tags.iter().cloned());
        }
        answered("CreateTags", "")
    }
}

fn template_key(config: usize) -> String {
    format!("LaunchTemplateConfigs.{config}.LaunchTemplateSpecification.LaunchTemplateName")
}

/// The tags that a request sets on resources of a kind.
pub fn tags(params: &Params, kind: &str) -> BTreeMap<String, String> {
    let of = (1..).take_while(|n| params.contains_key(&format!("TagSpecification.{n}.ResourceType")));
    let mut tags = BTreeMap::new();
    for n in of.filter(|n| params[&format!("TagSpecification.{n}.ResourceType")] == kind) {
        for t in (1..).take_while(|t| params.contains_key(&format!("TagSpecification.{n}.Tag.{t}.Key"))) {
            let of = |field: &str| params[&format!("TagSpecification.{n}.Tag.{t}.{field}")].clone();
            tags.insert(of("Key"), of("Value"));
        }
    }
    tags
}

fn list(params: &Params, name: &str) -> Vec<String> {
    (1..).map_while(|n| params.get(&format!("{name}.{n}")).cloned()).collect()
}

fn filters(params: &Params) -> Vec<(String, Vec<String>)> {
    (1..).map_while(|n| Some((params.get(&format!("Filter.{n}.Name"))?.clone(), list(params, &format!("Filter.{n}.Value"))))).collect()
}

fn filter(params: &Params, name: &str) -> Option<Vec<String>> {
    filters(params).into_iter().find(|(key, _)| key == name).map(|(_, values)| values)
}

fn answered(action: &str, body: &str) -> Reply {
    let body =
        format!("<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId>{body}</{action}Response>");
    Reply::Whole(200, "text/xml", body)
}

fn refused(code: &str, message: &str) -> Reply {
    let status = if code == "RequestLimitExceeded" { 503 } else { 400 };
    let body = format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>r</RequestID></Response>"
    );
    Reply::Whole(status, "text/xml", body)
}

fn decode(body: &str) -> Params {
    let text = |raw: &str| {
        let (mut bytes, mut rest) = (Vec::new(), raw.bytes());
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digits: String = rest.by_ref().take(2).map(char::from).collect();
                    u8::from_str_radix(&digits, 16).unwrap()
                }
                other => other,
            });
        }
        String::from_utf8(bytes).unwrap()
    };
    body.split('&').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (text(key), text(value))).collect()
}
