// Nominal types: a string that was checked is not any string.

declare const brand: unique symbol
export type Brand<T, Name extends string> = T & { readonly [brand]: Name }
