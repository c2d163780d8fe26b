//! Landlock: restricts the process to the files that it needs.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, path_beneath_rules,
};

use super::Files;

/// The newest version of the rights. Older kernels enforce the rights that they support.
const RIGHTS: ABI = ABI::V5;

/// The log message on a kernel without Landlock.
const MISSING: &str = "files not restricted: this kernel has no Landlock (it needs Linux 5.19 or later, enabled at boot)";

/// Restricts this thread and the threads that it starts later.
///
/// # Errors
/// The kernel refused a request.
pub fn restrict(files: &Files) -> Result<String, String> {
    let all = AccessFs::from_all(RIGHTS);
    let read = AccessFs::from_read(RIGHTS) & !AccessFs::Execute;
    let directories = files
        .readable
        .iter()
        .filter_map(|path| path.parent())
        .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let build = || {
        let mut ruleset = Ruleset::default();
        if !files.writable.is_empty() {
            // Before Linux 5.19, Landlock refused every move of a file to another directory, which is how a
            // received file gets its name.
            ruleset = ruleset
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::Refer)?;
        }
        ruleset
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .create()?
            .add_rules(path_beneath_rules(&files.writable, all & !AccessFs::Execute))?
            .add_rules(path_beneath_rules(directories, read))?
            .restrict_self()
    };
    let status = match build() {
        Ok(status) => status,
        Err(RulesetError::HandleAccesses(_)) => return Ok(MISSING.to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => "files restricted by Landlock".to_owned(),
        RulesetStatus::PartiallyEnforced => {
            "files restricted by Landlock, as far as this kernel can".to_owned()
        }
        RulesetStatus::NotEnforced => MISSING.to_owned(),
    })
}
