//! Numbers in actions. Some invalid numbers (`089`, `0x0.2`) pass here: reading their value fails later.

use super::{Lexer, SyntaxProblem, Token, TokenKind, is_alphanumeric};

impl<'a> Lexer<'a> {
    /// Reads a number from the token's start on. `1+2i` is one number.
    pub(super) fn read_number(&mut self) -> Result<Token<'a>, SyntaxProblem> {
        if !self.scan_number() {
            return Err(bad_number(self.emit(TokenKind::Number)));
        }
        if !matches!(self.peek(), Some('+' | '-')) {
            return Ok(self.emit(TokenKind::Number));
        }
        let whole = self.scan_number();
        let token = self.emit(TokenKind::Complex);
        if whole && token.text.ends_with('i') {
            Ok(token)
        } else {
            Err(bad_number(token))
        }
    }

    fn scan_number(&mut self) -> bool {
        self.accept(&['+', '-']);
        let mut radix = 10;
        if self.accept(&['0']) {
            if self.accept(&['x', 'X']) {
                radix = 16;
            } else if self.accept(&['o', 'O']) {
                radix = 8;
            } else if self.accept(&['b', 'B']) {
                radix = 2;
            }
        }
        self.accept_digits(radix);
        if self.accept(&['.']) {
            self.accept_digits(radix);
        }
        let exponent: &[char] = match radix {
            10 => &['e', 'E'],
            16 => &['p', 'P'],
            _ => &[],
        };
        if self.accept(exponent) {
            self.accept(&['+', '-']);
            self.accept_digits(10);
        }
        self.accept(&['i']);
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }

    fn accept(&mut self, valid: &[char]) -> bool {
        let accepted = self.peek().is_some_and(|next| valid.contains(&next));
        if accepted {
            self.next();
        }
        accepted
    }

    fn accept_digits(&mut self, radix: u32) {
        while self
            .peek()
            .is_some_and(|next| next == '_' || next.is_digit(radix))
        {
            self.next();
        }
    }
}

fn bad_number(token: Token<'_>) -> SyntaxProblem {
    token.problem(format!("bad number syntax: {:?}", token.text))
}
