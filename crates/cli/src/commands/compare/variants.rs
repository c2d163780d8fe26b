//! Variants of a comparison: every combination of scenarios, schedulers and values of keys.

use ropewalk_lab::compare::Variant;
use ropewalk_scenario::{Named, Override, SchedulerName};

use super::CompareArgs;
use crate::args::FileArgs;
use crate::failure::Failure;
use crate::vary::Vary;

/// Maximum number of variants.
const MOST: usize = 1000;

/// The variants, and the columns that name them in a table.
#[derive(Debug)]
pub struct Variants {
    /// Heading of each column.
    pub columns: Vec<String>,
    /// The variants.
    pub all: Vec<Variant>,
    /// For each variant, its cell in each of the columns.
    pub names: Vec<Vec<String>>,
    /// Whether the variants only differ in their schedulers.
    pub only_schedulers: bool,
}

/// One choice of a dimension: its cell in the table, its part of the label, and the change that it makes.
struct Choice {
    cell: String,
    label: String,
    change: Option<(&'static str, String)>,
}

/// Every combination that the arguments request.
///
/// # Errors
/// A scenario that is invalid with one of the changes, two variants of the same name, or too many
/// variants.
pub fn variants(args: &CompareArgs) -> Result<Variants, Failure> {
    let varied = args.vary.iter().map(|vary| Vary::parse(vary)).collect::<Result<Vec<_>, _>>()?;
    check_keys(&varied)?;
    let files = args.files();
    let schedulers = schedulers(args, &varied, files.len());
    let mut columns = Vec::new();
    let mut dimensions: Vec<Vec<Choice>> = Vec::new();
    if !schedulers.is_empty() {
        columns.push("scheduler".to_owned());
        dimensions.push(schedulers);
    }
    for vary in &varied {
        columns.push(vary.key.clone());
        let choice =
            |(cell, label, change)| Choice { cell, label, change: Some(("--vary", change)) };
        dimensions.push(vary.changes().map(choice).collect());
    }
    let count = dimensions.iter().map(Vec::len).product::<usize>().saturating_mul(files.len());
    if count > MOST {
        let message = format!("{count} variants are too many");
        return Err(Failure::input(message, format!("`compare` has up to {MOST}; see `sweep`")));
    }
    let only_schedulers = files.len() == 1 && varied.is_empty();
    let mut found = Variants { columns, all: Vec::new(), names: Vec::new(), only_schedulers };
    let titles = titles(&files);
    if files.len() > 1 {
        found.columns.insert(0, "scenario".to_owned());
    }
    for (file, title) in files.iter().zip(titles) {
        let title = (files.len() > 1).then_some(title);
        for choices in combinations(&dimensions) {
            found.add(file, title.as_deref(), &choices)?;
        }
    }
    found.check_labels()?;
    Ok(found)
}

impl Variants {
    fn add(
        &mut self,
        file: &FileArgs,
        title: Option<&str>,
        choices: &[&Choice],
    ) -> Result<(), Failure> {
        let changes = choices.iter().filter_map(|choice| choice.change.as_ref());
        let changes: Vec<Override<'_>> =
            changes.map(|(option, change)| Override { option, change }).collect();
        let scenario = file.load_with(&changes)?;
        let labels = title.into_iter().chain(choices.iter().map(|choice| choice.label.as_str()));
        let label = labels.collect::<Vec<_>>().join(", ");
        let cells = title.into_iter().chain(choices.iter().map(|choice| choice.cell.as_str()));
        self.names.push(cells.map(str::to_owned).collect());
        self.all.push(Variant { label, scenario });
        Ok(())
    }

    /// Checks that labels are unique, because results are found by label.
    fn check_labels(&self) -> Result<(), Failure> {
        let mut labels: Vec<&str> = self.all.iter().map(|one| one.label.as_str()).collect();
        labels.sort_unstable();
        let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) else { return Ok(()) };
        let message = format!("two variants are called `{}`", pair[0]);
        Err(Failure::input(message, "give each scenario, scheduler and value once"))
    }
}

/// The schedulers to try. Empty if each scenario runs with its own.
fn schedulers(args: &CompareArgs, varied: &[Vary], files: usize) -> Vec<Choice> {
    let own = args.schedulers.is_empty() && (!varied.is_empty() || files > 1);
    let names = match args.schedulers.is_empty() {
        _ if own => Vec::new(),
        // `compare` should quickly show the potential of a scenario, so it tries all schedulers by
        // default.
        true => SchedulerName::ALL.iter().copied().filter(|name| is_available(*name)).collect(),
        false => args.schedulers.clone(),
    };
    let choice = |name: SchedulerName| {
        let change = Some(("--schedulers", format!("transfer.scheduler={name}")));
        Choice { cell: name.to_string(), label: name.to_string(), change }
    };
    names.into_iter().map(choice).collect()
}

/// Whether the scheduler is available: a reserved name does not parse.
fn is_available(name: SchedulerName) -> bool {
    name.as_str().parse::<SchedulerName>().is_ok()
}

fn check_keys(varied: &[Vary]) -> Result<(), Failure> {
    for (at, vary) in varied.iter().enumerate() {
        if varied[..at].iter().any(|other| other.key == vary.key) {
            let message = format!("--vary {}: the key is given twice", vary.key);
            return Err(Failure::input(
                message,
                "give all its values at once, separated by commas",
            ));
        }
    }
    Ok(())
}

/// A title for each file: its name, or its path if names are equal.
fn titles(files: &[FileArgs]) -> Vec<String> {
    let names: Vec<String> = files.iter().map(FileArgs::title).collect();
    let title = |(file, name): (&FileArgs, &String)| {
        let unique = names.iter().filter(|other| *other == name).count() == 1;
        if unique { name.clone() } else { file.scenario.display().to_string() }
    };
    files.iter().zip(&names).map(title).collect()
}

/// Every combination of one choice of each dimension; the last dimension changes fastest.
fn combinations(dimensions: &[Vec<Choice>]) -> Vec<Vec<&Choice>> {
    dimensions.iter().fold(vec![Vec::new()], |known, choices| {
        known
            .iter()
            .flat_map(|before| {
                choices.iter().map(|choice| before.iter().copied().chain([choice]).collect())
            })
            .collect()
    })
}
