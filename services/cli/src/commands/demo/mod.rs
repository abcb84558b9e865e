//! `demo`: the story of one action in numbered lines, each of them checked against the world, so that it is also
//! a test. `--sabotage N` breaks what line N checks; the check itself knows nothing of it.

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::App;
use crate::failure::{self, Failure};
use crate::text;

mod evidence;
mod own;
mod processes;
mod provider;
mod sabotage;
mod secrets;
mod sqlite;
mod story;
mod world;

use story::Story;

/// Arguments of `demo`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Decides by itself, for scripts.
    #[arg(long)]
    yes: bool,
    /// Breaks what this line checks; the demo must then fail on it.
    #[arg(long, value_name = "LINE", value_parser = clap::value_parser!(u8).range(1..=LAST))]
    sabotage: Option<u8>,
}

/// Titles of the lines, in order.
const TITLES: [&str; 12] = [
    "an operator starts a run for an agent",
    "a read is allowed by a rule, and its answer comes back",
    "a message is held for a person, and nothing was sent",
    "the person sees the exact bytes and says yes",
    "exactly the approved bytes reached the phone, once",
    "one digit changed in the broker's own database: refused, nothing sent",
    "the same yes cannot be used twice",
    "a plan of five, of which three are approved: three are sent",
    "broker killed between the yes and the sending: nothing lost, sent once",
    "planted secrets in all that agent and logs saw: none",
    "the evidence is exported and verified without the server",
    "one bit of it flipped: the verifier names the place",
];
const LAST: i64 = 12;

/// What a line saw: text for people, values for machines.
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl Seen {
    fn new(text: impl Into<String>, value: Value) -> Self {
        Self { text: text.into(), value }
    }
}

/// Why a line did not hold.
pub(crate) type Broken = String;

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    let decides = decider(&args, app)?;
    let plane = own::find_or_start(args.sabotage.is_some(), app).await?;
    let result = tell(&plane.ready_file, &args, decides, app).await;
    plane.stop().await;
    result
}

/// Who says yes in line 4.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decider {
    /// `--yes`.
    Itself,
    /// A person at this terminal.
    Person,
}

fn decider(args: &Args, app: &App) -> Result<Decider, Failure> {
    use std::io::IsTerminal as _;
    if args.yes {
        return Ok(Decider::Itself);
    }
    if app.global.no_input || !std::io::stdin().is_terminal() || !app.output.is_table() {
        return Err(Failure::usage("the demo asks for your yes; without a terminal say --yes"));
    }
    Ok(Decider::Person)
}

async fn tell(ready_file: &std::path::Path, args: &Args, decides: Decider, app: &App) -> Result<u8, Failure> {
    let total = TITLES.len();
    let mut lines = Vec::new();
    let mut broken = None;
    let mut story = Story::open(ready_file, decides, args.sabotage, app)?;
    for (number, title) in (1_u8..).zip(TITLES) {
        let result = story.line(number).await;
        // Whatever a line stopped or froze goes on.
        story.repair();
        let (held, seen, value) = match result {
            Ok(seen) => (true, seen.text, seen.value),
            Err(why) => (false, why.clone(), json!({"why": why})),
        };
        let mark = if held { "ok  " } else { "FAIL" };
        let human = format!(
            "{number:>2}. {mark} {title}\n         {}",
            text::lines(&seen).replace('\n', "\n         ")
        );
        let line = json!({"line": number, "title": title, "held": held, "saw": value});
        app.output.line(&human, &line);
        lines.push(line);
        if !held {
            broken = Some((number, seen));
            break;
        }
    }
    let held = lines.len() - usize::from(broken.is_some());
    let summary = format!("demo: {held} of {total} held");
    let mut value = json!({"held": held, "of": total, "lines": lines});
    if let (Some((number, why)), Some(value)) = (&broken, value.as_object_mut()) {
        value.insert("failed_line".to_owned(), (*number).into());
        value.insert("why".to_owned(), why.clone().into());
        app.output.note(&format!("line {number} did not hold: {}", text::lines(why)));
    }
    app.output.value(&value, || summary);
    Ok(if broken.is_none() { 0 } else { failure::FAILED })
}
