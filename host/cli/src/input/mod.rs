//! What a person gives: a directory of manifests, a story, types and prices. Read whole and judged
//! before anything runs, so that all that is wrong is told at once.
//!
//! What must not enter: running anything.

mod catalogs;
mod files;
mod library;
mod objects;
mod path;
mod remarks;
mod start;

use whittle_cluster::{Located, Object, Strictness, link, manifest};
use whittle_model::Settings;
use whittle_sim::{Line, Scenario, Story, StoryError, Verb};

use crate::args::World;
use crate::failure::Failure;
use crate::market;
use crate::policy::Policies;
use catalogs::Catalogs;
use library::Library;

pub use files::Files;

/// Everything a simulation needs.
pub struct Input {
    /// What is there before the story begins.
    pub scenario: Scenario,
    /// What happens.
    pub story: Story,
    /// Reads what the story names.
    pub library: Library,
    /// Who judges prices and moves; `None` when list prices do.
    pub chains: Option<whittle_policy::Chains>,
    /// The same policies as a journal describes them, and their components.
    pub policies: (whittle_journal::Policies, Vec<Vec<u8>>),
    /// What was assumed, set aside, skipped or not used: one line each, for people.
    pub remarks: Vec<String>,
    /// Whether fields were set aside that would change where pods run.
    pub partial: bool,
}

/// Reads and judges everything.
///
/// # Errors
/// All faults of all files at once; or the story's first; or each field that is not acted on yet,
/// unless the arguments let them pass.
pub fn read(args: &World) -> Result<Input, Failure> {
    judge(Files::read(&args.dir)?, args)
}

/// Judges what was read.
///
/// # Errors
/// As [`read`], but for what cannot be read at all.
pub fn judge(mut files: Files, args: &World) -> Result<Input, Failure> {
    let sources = market::sources(&args.market)?;
    let given = market::given(&args.market, &sources)?;
    let story = files.story.as_deref().map(Story::parse).transpose().map_err(|error| files.in_story(&error))?;
    let catalogs = Catalogs::new(sources, &args.market.region);
    if let Some(story) = &story {
        files.add_named(story)?;
        for line in &story.lines {
            if let Some(why) = catalogs.unknown(&line.verb) {
                return Err(files.in_story(&StoryError { number: line.number, text: line.text.clone(), why }));
            }
        }
    }
    let objects = objects(&files)?;
    let applied = story.as_ref().map(applied);
    let plan = start::Plan::of(&objects, &files, applied.as_deref());
    let used: Vec<&Located<Object>> = objects.iter().filter(|located| !plan.unused.contains(&located.file)).collect();
    let refused = remarks::refused(&used);
    if !refused.is_empty() && !args.allow_unsupported {
        return Err(Failure::Unsupported(refused));
    }
    let policies = Policies::gather(&used, &args.policy)?;
    let assumed = catalogs.assumed(&used)?;
    let mut remarks = remarks::of(&used, &plan.unused, &assumed, &refused);
    remarks.extend(remarks::gated(&used, &args.gates.set(Settings::default()).features));
    remarks.extend(start::remark(&plan));
    remarks.extend(policies.remarks);
    let mut library = Library::new(&files, objects, catalogs, policies.everywhere);
    let mut scenario = Scenario { objects: assumed.into_iter().map(|(_, object)| object).collect(), given };
    for file in &plan.before {
        scenario.objects.extend(library.objects_of(file).map_err(Failure::Usage)?);
    }
    start::rebase(&mut scenario.objects);
    let story = story.map_or_else(|| plan.story(), Ok)?;
    Ok(Input {
        scenario,
        story,
        library,
        chains: policies.chains,
        policies: (policies.described, policies.components),
        remarks,
        partial: !refused.is_empty(),
    })
}

fn objects(files: &Files) -> Result<Vec<Located<Object>>, Failure> {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    for file in &files.manifests {
        match manifest::read(&file.text, &file.shown, Strictness::Strict) {
            Ok(some) => objects.extend(some),
            Err(error) => problems.extend(error.problems),
        }
    }
    if !problems.is_empty() {
        return Err(manifest::ManifestError { problems }.into());
    }
    Ok(link(objects)?)
}

/// The files that a story applies.
fn applied(story: &Story) -> Vec<String> {
    let named = |line: &Line| if let Verb::Apply(files) = &line.verb { files.clone() } else { Vec::new() };
    story.lines.iter().flat_map(named).collect()
}
