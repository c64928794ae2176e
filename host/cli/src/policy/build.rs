//! `whittle policy build`: a crate becomes a component.

use std::io::Write;
use std::path::Path;

use whittle_component::Build;

use super::scaffold;
use super::source::Modules;
use crate::args::BuildPolicy;
use crate::failure::{End, Failure};
use crate::out::{FAINT, styled};

/// Builds the crate in a folder, sees whether it is a policy, and leaves it there as `NAME.wasm`.
///
/// # Errors
/// When the folder holds no crate, it does not compile, or what it makes is no policy.
pub fn run(args: &BuildPolicy, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    let folder = args.folder.as_path();
    let manifest = folder.join("Cargo.toml");
    let said = std::fs::read_to_string(&manifest).map_err(|why| {
        let name = folder.display();
        Failure::Usage(format!("{name} holds no policy: cannot read {}: {why}; `whittle policy new {name}` makes one", manifest.display()))
    })?;
    if said.contains("path = \"sdk\"") && !folder.join("sdk").exists() {
        scaffold::unpack_sdk(folder)?;
    }
    writeln!(err, "{}", styled(FAINT, &format!("building {} with cargo; the first time takes a minute", folder.display())))?;
    let target_dir = args.target_dir.as_ref().map(std::path::absolute).transpose().map_err(Failure::Write)?;
    let component = Build { target_dir, ..Build::default() }.run(folder).map_err(|error| Failure::Usage(error.to_string()))?;
    let path = leave(folder, &component)?;
    writeln!(out, "{}", path.display())?;
    Ok(End::Done)
}

/// Writes the component beside its crate, once it is known to be a policy.
fn leave(folder: &Path, component: &[u8]) -> Result<std::path::PathBuf, Failure> {
    let built = folder.join("target").join("policy.wasm.new");
    let parent = built.parent().unwrap_or(folder);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |why: std::io::Error| Failure::Usage(format!("cannot write {}: {why}", path.display()))
    };
    std::fs::create_dir_all(parent).map_err(failed(parent))?;
    std::fs::write(&built, component).map_err(failed(&built))?;
    let module = Modules::new()?.file(&built).map_err(Failure::Usage)?;
    let path = folder.join(format!("{}.wasm", module.manifest().name));
    std::fs::rename(&built, &path).map_err(failed(&path))?;
    Ok(path)
}
