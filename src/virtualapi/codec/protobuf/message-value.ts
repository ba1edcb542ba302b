// A decoded message before it becomes JSON.
import type { Int64, JsonValue } from '#apimachinery/meta/index.ts'
import type { MessageType } from './message-table.ts'

/** A decoded message: the value of each field that was sent. */
export interface MessageValue {
  readonly type: MessageType
  readonly fields: (FieldValue | undefined)[]
}
export type SingleValue = boolean | Int64 | string | Uint8Array | SpecialValue | MessageValue
export type FieldValue = SingleValue | SingleValue[] | Map<string, SingleValue>

/** A value of a special type: its JSON form or, for the JSONSchemaPropsOr types, decoded schemas. */
export interface SpecialValue {
  readonly json: JsonValue
  /** True if Go omits the value under omitempty or omitzero. */
  readonly empty: boolean
  /** The decoded schema, which replaces `json` if it is set. `schemas` does so, too. */
  readonly schema?: MessageValue
  readonly schemas?: readonly MessageValue[]
}
