// Nominal types: a checked string has another type than an unchecked one.

declare const brand: unique symbol
export type Brand<T, Name extends string> = T & { readonly [brand]: Name }
