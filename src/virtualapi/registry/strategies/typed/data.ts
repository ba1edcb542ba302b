// The types of client-node as plain data: what an object is once it was decoded from JSON.

/** `T` without classes; times are text. */
export type Data<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Data<Item>[]
    : T extends object
      ? { [Member in keyof T]: Data<T[Member]> }
      : T
