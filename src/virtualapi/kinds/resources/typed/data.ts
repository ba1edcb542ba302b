// The classes of @kubernetes/client-node as plain data: the type of an object decoded from JSON.

/** `T` without classes: times are strings, and members that client-node prefixes with `_` have their JSON name. */
export type Data<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Data<Item>[]
    : T extends object
      ? { [Member in keyof T as Member extends `_${infer Name}` ? Name : Member]: Data<T[Member]> }
      : T
