//! The whole graph of states, backwards: from wherever a run is, can everything still end? A checker of
//! properties of single states does not see a reservation that nobody will ever end.

use std::collections::{HashMap, VecDeque};

use stateright::Model;

use crate::protocol::Protocol;
use crate::world::World;

/// A state from which the end cannot be reached any more.
#[derive(Debug)]
pub struct Unfinished {
    /// The state.
    pub world: Box<World>,
}

/// Number of states, if each can reach an end at which nothing is reserved, owed or under way.
///
/// # Errors
/// The first state that cannot.
pub fn can_always_end(protocol: &Protocol) -> Result<usize, Unfinished> {
    let mut ids: HashMap<World, usize> = HashMap::new();
    let mut worlds: Vec<World> = Vec::new();
    let mut before: Vec<Vec<usize>> = Vec::new();
    let mut queue = VecDeque::new();
    for world in protocol.init_states() {
        ids.insert(world.clone(), worlds.len());
        queue.push_back(worlds.len());
        worlds.push(world);
        before.push(Vec::new());
    }
    let mut steps = Vec::new();
    while let Some(at) = queue.pop_front() {
        let world = worlds[at].clone();
        steps.clear();
        protocol.actions(&world, &mut steps);
        for step in &steps {
            let Some(after) = protocol.next_state(&world, *step) else { continue };
            let next = worlds.len();
            let id = *ids.entry(after.clone()).or_insert(next);
            if id == next {
                worlds.push(after);
                before.push(Vec::new());
                queue.push_back(id);
            }
            before[id].push(at);
        }
    }
    let mut ends: Vec<bool> = worlds.iter().map(World::is_over).collect();
    let mut queue: VecDeque<usize> = (0..worlds.len()).filter(|at| ends[*at]).collect();
    while let Some(at) = queue.pop_front() {
        for earlier in &before[at] {
            if !ends[*earlier] {
                ends[*earlier] = true;
                queue.push_back(*earlier);
            }
        }
    }
    match ends.iter().position(|ends| !ends) {
        Some(at) => Err(Unfinished { world: Box::new(worlds.swap_remove(at)) }),
        None => Ok(worlds.len()),
    }
}
