// This file makes the compiler accept a function without a body: main.main.
