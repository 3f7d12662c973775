use std::io;
use crate::a::{self, b::C, d as e};
use super::x::*;
mod child;
/// doc
#[derive(Debug)]
pub struct S { pub a: u32, b: String }
pub enum E { A, B(u32), C { x: i32 } }
pub trait Tr { fn f(&self) -> u32; fn g(&self) { 1; } }
impl<T> Tr for S<T> { fn f(&self) -> u32 { 3 } pub fn new() -> Self { S{} } }
pub const N: usize = 3;
pub fn free<T: Clone>(a: T) -> Option<T> where T: X { None }
macro_rules! m { ($a:expr) => { $a + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 } }
mod inner { pub fn deep() {} }
#[cfg(test)]
mod tests { fn t() {} }
