// The types of client-node as plain data: what an object is once it was decoded from JSON.

/** `T` without classes; times are text, and members that are words of the language go by their own name. */
export type Data<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Data<Item>[]
    : T extends object
      ? { [Member in keyof T as Member extends `_${infer Name}` ? Name : Member]: Data<T[Member]> }
      : T
