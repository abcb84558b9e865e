//! Times, durations and limits as people write them. Knows no rule.

use exequatur_proto::policy::v1 as proto;
use exequatur_yaml::{FileError, Kind, Node};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// `90s`, `15m`, `24h`, `7d`.
pub(super) fn duration(node: &Node, max: u64) -> Result<u64, FileError> {
    let wrong = || node.error("must be a whole number and one of s, m, h, d, such as `15m` or `24h`");
    let Kind::Text(text) = &node.kind else { return Err(wrong()) };
    let unit = match text.chars().next_back() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        _ => return Err(wrong()),
    };
    let digits = text.trim_end_matches(['s', 'm', 'h', 'd']);
    if digits.len() + 1 != text.len() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
    if !(1..=max).contains(&seconds) {
        return Err(node.error(format!("must be 1 second to {} days", max / 86_400)));
    }
    Ok(seconds)
}

/// `{days: [mon, fri], from: "09:00", to: "17:00", offset: "+01:00", after: …, before: …}`.
pub(super) fn window(node: &Node) -> Result<proto::TimeWindow, FileError> {
    const DAYS: &[(&str, u32)] =
        &[("mon", 1), ("tue", 2), ("wed", 3), ("thu", 4), ("fri", 5), ("sat", 6), ("sun", 7)];
    let mut map = node.map()?;
    let mut out = proto::TimeWindow::default();
    if let Some(days) = map.take("days") {
        for day in super::either(days)? {
            let number = day.word(DAYS)?;
            if out.days.contains(&number) {
                return Err(day.error("the day stands twice"));
            }
            out.days.push(number);
        }
        out.days.sort_unstable();
    }
    let (from, to) = (map.take("from"), map.take("to"));
    match (from, to) {
        (Some(from), Some(to)) => {
            out.from_minute = minute(from)?;
            out.to_minute = minute(to)?;
            if out.from_minute == out.to_minute {
                return Err(to.error("the window is empty; leave `from` and `to` out for the whole day"));
            }
        }
        (Some(one), None) | (None, Some(one)) => {
            return Err(one.error("`from` and `to` stand together"));
        }
        (None, None) => {}
    }
    if let Some(offset) = map.take("offset") {
        let text = offset.text()?;
        let wrong = || offset.error("must be an offset from UTC such as `\"+01:00\"`");
        let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(rest), _) => (1, rest),
            (_, Some(rest)) => (-1, rest),
            _ => return Err(wrong()),
        };
        out.offset_minutes = clock(rest).and_then(|m| i32::try_from(m).ok()).ok_or_else(wrong)? * sign;
    }
    for key in ["after", "before"] {
        let Some(at) = map.take(key) else { continue };
        let seconds = moment(at)?;
        *(if key == "after" { &mut out.not_before_s } else { &mut out.not_after_s }) = seconds;
    }
    map.done()?;
    if out == proto::TimeWindow::default() {
        return Err(node.error("the window is always; leave `time` out"));
    }
    crate::window::Window::compile(&out).map_err(|why| node.error(why))?;
    Ok(out)
}

fn clock(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |t: &str| t.len() == 2 && t.bytes().all(|b| b.is_ascii_digit());
    let (h, m) = (hour.parse::<u32>().ok()?, minute.parse::<u32>().ok()?);
    (digits(hour) && digits(minute) && h < 24 && m < 60).then_some(h * 60 + m)
}

fn minute(node: &Node) -> Result<u32, FileError> {
    clock(node.text()?).ok_or_else(|| node.error("must be a time of day such as `\"09:00\"`"))
}

fn moment(node: &Node) -> Result<u64, FileError> {
    let seconds = OffsetDateTime::parse(node.text()?, &Rfc3339).ok().map(OffsetDateTime::unix_timestamp);
    seconds
        .and_then(|s| u64::try_from(s).ok())
        .filter(|s| *s > 0)
        .ok_or_else(|| node.error("must be a moment such as `\"2030-01-31T09:00:00Z\"`"))
}

/// `{count: 10, per: 1h}`.
pub(super) fn rate(node: &Node) -> Result<proto::Rate, FileError> {
    let mut map = node.map()?;
    let count = map.need("count")?.whole(1, 1_000_000_000)?;
    let per_s = duration(map.need("per")?, crate::check::MAX_EXPIRES_S)?;
    map.done()?;
    Ok(proto::Rate { count, per_s })
}
