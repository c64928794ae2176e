//! What the lines of a story do.

use whittle_model::{Duration, OfferingKey};

use super::{Ending, Expectation, RunError, Simulation};
use crate::reality::{Boot, SoldOut};
use crate::scenario::{Manifests, ObjectKind};
use crate::story::{Condition, Line, Story, Target, Verb};
use crate::timeline::{Observer, TimelineEvent};

impl Simulation {
    /// Plays a story to its end. It may be called again with another story, which goes on where
    /// the first ended.
    ///
    /// # Errors
    /// When a line cannot be done, an `until` does not come true, or a safety rule is broken.
    pub fn run(&mut self, story: &Story, manifests: &mut dyn Manifests, observer: &mut dyn Observer) -> Result<Ending, RunError> {
        let mut expected = Vec::new();
        for (nth, line) in story.lines.iter().enumerate() {
            observer.progress(self.now(), nth, story.lines.len());
            if let Verb::Expect(text) = &line.verb {
                expected.push(Expectation { number: line.number, text: text.clone() });
                continue;
            }
            self.say(&TimelineEvent::Story { line: line.number, text: line.text.clone() }, observer);
            self.perform(line, (nth, story.lines.len()), manifests, observer)?;
            self.flush(observer);
        }
        self.check_books()?;
        expected.retain(|e| !self.shown(&e.text));
        Ok(Ending { unmet: expected })
    }

    /// Whether a line of the timeline that the world or the engine wrote has this text.
    fn shown(&self, text: &str) -> bool {
        self.lines.iter().any(|line| !line.starts_with('>') && line.contains(text))
    }

    fn perform(
        &mut self,
        line: &Line,
        place: (usize, usize),
        manifests: &mut dyn Manifests,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let cannot = |why: String| RunError::Line { number: line.number, text: line.text.clone(), why };
        match &line.verb {
            Verb::Apply(files) => {
                let mut objects = Vec::new();
                for file in files {
                    objects.extend(manifests.load(file).map_err(cannot)?);
                }
                self.reality.apply(objects).map_err(cannot)?;
            }
            Verb::Delete(object) => self.reality.delete(object).map_err(cannot)?,
            Verb::Scale(object, replicas) => {
                let ObjectKind::Workload(kind) = object.kind else { return Err(cannot("only workloads can be scaled".to_owned())) };
                if !self.reality.scale(kind, &object.key, *replicas) {
                    return Err(cannot(format!("there is no {object}; apply it first")));
                }
            }
            Verb::Set { object, path, value } => {
                let objects = manifests.set(object, path, value).map_err(cannot)?;
                self.reality.apply(objects).map_err(cannot)?;
            }
            Verb::Wait(span) => self.wait(*span, place, observer)?,
            Verb::Until { condition, within } => self.until(line, (*condition, *within), place, observer)?,
            Verb::SoldOut { capacity_type, instance_type, zone, lasting } => {
                let (instance_type, zone) = (instance_type.clone(), zone.clone());
                self.reality.sell_out(SoldOut { capacity_type: *capacity_type, instance_type, zone, until: None }, *lasting);
            }
            Verb::Interrupt(target) => {
                let node = self.node(target).map_err(cannot)?;
                happened(self.reality.interrupt(&node), &node).map_err(cannot)?;
            }
            Verb::Advise(target) => {
                let node = self.node(target).map_err(cannot)?;
                happened(self.reality.advise(&node), &node).map_err(cannot)?;
            }
            Verb::Price { capacity_type, instance_type, zone, price } => {
                let key = OfferingKey { instance_type: instance_type.clone(), zone: zone.clone(), capacity_type: *capacity_type };
                if !self.reality.reprice(&key, *price) {
                    return Err(cannot(format!(
                        "{key} is not sold; apply its node class first, and see `whittle types` for what there is"
                    )));
                }
            }
            Verb::Reserve { id, instances } => self.reality.hold(id, *instances),
            Verb::Boot(delay) => self.reality.boot = Boot::Told(*delay),
            Verb::Crash => self.crash(),
            Verb::Expect(_) => {}
        }
        Ok(())
    }

    fn node(&self, target: &Target) -> Result<String, String> {
        let node = match target {
            Target::Node(name) => Some(name.clone()),
            Target::Oldest => self.reality.oldest(None),
            Target::Capacity(capacity_type) => self.reality.oldest(Some(*capacity_type)),
        };
        node.ok_or_else(|| "no such node is running".to_owned())
    }

    fn wait(&mut self, span: Duration, place: (usize, usize), observer: &mut dyn Observer) -> Result<(), RunError> {
        let limit = self.now().plus(span);
        while self.step(limit, observer)? {
            observer.progress(self.now(), place.0, place.1);
        }
        Ok(())
    }

    fn until(
        &mut self,
        line: &Line,
        (condition, within): (Condition, Duration),
        place: (usize, usize),
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let since = self.now();
        let limit = since.plus(within);
        loop {
            let Err(why) = self.holds(condition) else {
                self.flush(observer);
                self.check_books()?;
                let after_ms = self.now().since(since).0;
                self.say(&TimelineEvent::Reached { condition: condition.to_string(), after_ms }, observer);
                return Ok(());
            };
            if !self.step(limit, observer)? {
                return Err(RunError::Never { number: line.number, text: line.text.clone(), within, why });
            }
            observer.progress(self.now(), place.0, place.1);
        }
    }
}

fn happened(did: bool, node: &str) -> Result<(), String> {
    if did { Ok(()) } else { Err(format!("node {node} has no running instance")) }
}
