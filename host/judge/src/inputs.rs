//! The values of control fields: the handles of typed values and of values that servers returned, the floors of a tool, and the references
//! of a call to handles.
//!
//! Pure. Never takes a value from a model for a floor, and never decides whether a call runs: the stage `inputs` does. See [`bind`].

mod bind;
mod dispatch;
pub mod handles;
mod leaves;
mod offered;
mod origin;
pub mod returned;
mod schemas;

pub use bind::{Finding, Input, Inputs, Severity, Tool, bind, write_references};
pub use handles::{Answer, Handle, HandleId, Handles, Holder, Message, Task, fits};
pub use offered::with_references;
pub use origin::{ArgumentOrigin, OutputOf};

#[cfg(test)]
mod tests;
