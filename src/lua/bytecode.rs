//! Reads the bytecode that Luau's compiler makes of a source, for checks that need to know what each name means: which is a
//! local, which is a global, what is called with what. It is never run: a flow's code comes as text and is compiled here.
//!
//! The form is that of `Luau/Bytecode.h`, version 9, as this build's compiler writes it without optimising. Another version
//! is not read, and then nothing is found; a test holds this reader to the compiler.

use mlua::chunk::Compiler;

/// The version of the form that is read, and the version of its (absent) types.
const VERSION: (u8, u8) = (9, 3);

/// The functions of a source; the last one is its top level.
pub(super) struct Bytecode {
    pub(super) functions: Vec<FunctionCode>,
    pub(super) main: usize,
}

/// One function.
#[derive(Default)]
pub(super) struct FunctionCode {
    pub(super) code: Vec<Instruction>,
    pub(super) constants: Vec<Constant>,
    /// The functions that it makes.
    pub(super) children: Vec<usize>,
    /// Names of its parameters, by their registers.
    pub(super) parameter_names: Vec<(u8, String)>,
}

/// An instruction with its operands, as far as they are needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub(super) op: Op,
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) c: u8,
    /// The operand that stands in the word behind.
    pub(super) aux: usize,
    pub(super) line: usize,
    /// Where it stands, counted in words.
    pub(super) word: usize,
    /// The word that it may go on at, if that is further on.
    pub(super) jumps_to: Option<usize>,
}

impl Instruction {
    /// The operand that `b` and `c` are together.
    pub(super) fn d(self) -> usize {
        usize::from(self.b) | usize::from(self.c) << 8
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Text(String),
    /// The names of a table's fields.
    Fields(Vec<usize>),
    Function(usize),
    Other,
}

/// What an instruction does, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    LoadConstant,
    Move,
    GetGlobal,
    SetGlobal,
    GetUpvalue,
    GetField,
    SetField,
    /// As [`Op::SetField`], with the field's name in the third register: so are fields of a table that is made here written.
    SetNamed,
    NewFunction,
    NewFunctionOfConstant,
    Capture,
    Method,
    Call,
    NewTable,
    NewTableOfConstant,
    JumpIf,
    JumpIfNot,
    Not,
    /// It writes no register.
    Nothing,
    /// It writes its first register.
    Writes,
    /// It writes its first register, and those behind it.
    WritesAll,
}

impl Op {
    /// Tells whether it writes its first register.
    pub(super) fn writes(self) -> bool {
        !matches!(
            self,
            Op::SetGlobal | Op::SetField | Op::SetNamed | Op::Capture | Op::JumpIf | Op::JumpIfNot | Op::Nothing
        )
    }
}

/// The numbers of instructions (`LuauOpcode`) that mean something else than [`Op::Writes`].
const OPS: &[(u8, Op)] = &[
    (5, Op::LoadConstant),
    (6, Op::Move),
    (7, Op::GetGlobal),
    (8, Op::SetGlobal),
    (9, Op::GetUpvalue),
    (14, Op::SetNamed),
    (15, Op::GetField),
    (16, Op::SetField),
    (19, Op::NewFunction),
    (20, Op::Method),
    (21, Op::Call),
    (25, Op::JumpIf),
    (26, Op::JumpIfNot),
    (50, Op::Not),
    (53, Op::NewTable),
    (54, Op::NewTableOfConstant),
    (64, Op::NewFunctionOfConstant),
    (70, Op::Capture),
];
/// Those that write no register: NOP, BREAK, SETUPVAL, CLOSEUPVALS, SETTABLEN, RETURN, jumps, SETLIST, fast calls,
/// PREPVARARGS, COVERAGE.
const NOTHING: &[u8] =
    &[0, 1, 10, 11, 18, 22, 23, 24, 27, 28, 29, 30, 31, 32, 55, 60, 62, 65, 67, 68, 69, 73, 74, 75, 77, 78, 79, 80];
/// Those that write more than one register: loops, GETVARARGS.
const MANY: &[u8] = &[56, 57, 58, 59, 61, 63, 76];
/// Those that may go on elsewhere.
const JUMPS: &[u8] = &[23, 25, 26, 27, 28, 29, 30, 31, 32, 56, 59, 61, 76, 77, 78, 79, 80];
/// Those with a word behind them.
const LONG: &[u8] = &[7, 8, 12, 15, 16, 20, 27, 28, 29, 30, 31, 32, 53, 55, 58, 60, 66, 74, 75, 77, 78, 79, 80];

impl Bytecode {
    /// Compiles a source and reads what comes of it; `None` if it does not compile, or in a form that is not known.
    pub(super) fn of(source: &str) -> Option<Bytecode> {
        let compiler = Compiler::new().set_optimization_level(0).set_debug_level(2);
        let bytes = compiler.compile(source).ok()?;
        BytecodeReader { bytes: &bytes, at: 0 }.read()
    }
}

struct BytecodeReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BytecodeReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn number(&mut self) -> Option<usize> {
        let (mut number, mut shift) = (0_usize, 0);
        loop {
            let byte = self.byte()?;
            number |= usize::from(byte & 127).checked_shl(shift)?;
            shift += 7;
            if byte < 128 {
                return Some(number);
            }
        }
    }

    fn read(mut self) -> Option<Bytecode> {
        if (self.byte()?, self.byte()?) != VERSION {
            return None;
        }
        let count = self.number()?;
        let mut texts = Vec::new();
        for _ in 0..count {
            let length = self.number()?;
            texts.push(String::from_utf8_lossy(self.take(length)?).into_owned());
        }
        while self.byte()? != 0 {
            self.number()?;
        }
        let count = self.number()?;
        let mut functions = Vec::new();
        for _ in 0..count {
            functions.push(self.function(&texts)?);
        }
        Some(Bytecode { functions, main: self.number()? })
    }

    fn function(&mut self, texts: &[String]) -> Option<FunctionCode> {
        let [_, parameters, _, _, _] = *self.take(5)? else { return None };
        let types = self.number()?;
        self.take(types)?;
        let count = self.number()?;
        let words: Vec<u32> = (0..count).map(|_| self.word()).collect::<Option<_>>()?;
        let constants = self.constants(texts)?;
        let count = self.number()?;
        let children = (0..count).map(|_| self.number()).collect::<Option<_>>()?;
        self.number()?;
        self.number()?;
        let lines = self.lines(words.len())?;
        let mut parameter_names = Vec::new();
        if self.byte()? != 0 {
            for _ in 0..self.number()? {
                let name = self.number()?;
                let (_, _, register) = (self.number()?, self.number()?, self.byte()?);
                if register < parameters && !parameter_names.iter().any(|(known, _)| *known == register) {
                    parameter_names.push((register, texts.get(name.checked_sub(1)?)?.clone()));
                }
            }
            for _ in 0..self.number()? {
                self.number()?;
            }
        }
        Some(FunctionCode { code: instructions(&words, &lines), constants, children, parameter_names })
    }

    fn constants(&mut self, texts: &[String]) -> Option<Vec<Constant>> {
        let count = self.number()?;
        let mut constants = Vec::new();
        for _ in 0..count {
            constants.push(match self.byte()? {
                0 => Constant::Other,
                1 => self.take(1).map(|_| Constant::Other)?,
                2 => self.take(8).map(|_| Constant::Other)?,
                3 => Constant::Text(texts.get(self.number()?.checked_sub(1)?)?.clone()),
                4 => self.take(4).map(|_| Constant::Other)?,
                5 => {
                    let count = self.number()?;
                    Constant::Fields((0..count).map(|_| self.number()).collect::<Option<_>>()?)
                }
                6 => Constant::Function(self.number()?),
                7 => self.take(16).map(|_| Constant::Other)?,
                8 => {
                    let count = self.number()?;
                    let mut fields = Vec::new();
                    for _ in 0..count {
                        fields.push(self.number()?);
                        self.take(4)?;
                    }
                    Constant::Fields(fields)
                }
                9 => {
                    self.take(1)?;
                    self.number()?;
                    Constant::Other
                }
                _ => return None,
            });
        }
        Some(constants)
    }

    /// Returns the line of each word.
    fn lines(&mut self, words: usize) -> Option<Vec<usize>> {
        if self.byte()? == 0 {
            return Some(vec![0; words]);
        }
        let gap = self.byte()?;
        let mut offset = 0_u8;
        let mut offsets = Vec::new();
        for _ in 0..words {
            offset = offset.wrapping_add(self.byte()?);
            offsets.push(usize::from(offset));
        }
        let mut line = 0_i64;
        let mut starts = Vec::new();
        for _ in 0..(words.checked_sub(1)? >> gap) + 1 {
            line += i64::from(i32::from_le_bytes(self.take(4)?.try_into().ok()?));
            starts.push(usize::try_from(line).ok()?);
        }
        Some(offsets.iter().enumerate().map(|(at, offset)| starts[at >> gap] + offset).collect())
    }
}

fn instructions(words: &[u32], lines: &[usize]) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let [number, a, b, c] = word.to_le_bytes();
        let op = match OPS.iter().find(|(known, _)| *known == number) {
            Some((_, op)) => *op,
            None if NOTHING.contains(&number) => Op::Nothing,
            None if MANY.contains(&number) => Op::WritesAll,
            None => Op::Writes,
        };
        let is_long = LONG.contains(&number);
        let aux = if is_long { words.get(at + 1).map_or(0, |word| *word as usize) } else { 0 };
        let line = lines.get(at).copied().unwrap_or(0);
        let far = usize::try_from(i16::from_le_bytes([b, c])).ok().filter(|far| *far > 0 && JUMPS.contains(&number));
        let jumps_to = far.map(|far| at + 1 + far);
        instructions.push(Instruction { op, a, b, c, aux, line, word: at, jumps_to });
        at += 1 + usize::from(is_long);
    }
    instructions
}
