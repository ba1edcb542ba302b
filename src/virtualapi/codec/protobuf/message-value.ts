// What is read of a message, before it becomes JSON.
import type { JsonValue } from '../../../apimachinery/meta/index.ts'
import type { MessageType } from './message-table.ts'

/** Of a message, the value of each field that was sent. */
export interface MessageValue {
  readonly type: MessageType
  readonly fields: (FieldValue | undefined)[]
}
export type SingleValue = boolean | number | string | Uint8Array | SpecialValue | MessageValue
export type FieldValue = SingleValue | SingleValue[] | Map<string, SingleValue>

/** A value that is what its JSON form says, or schemas, which are written like every message. */
export interface SpecialValue {
  readonly json: JsonValue
  /** Go would leave it out under omitempty or omitzero. */
  readonly empty: boolean
  /** Stands for `json` where it is set. */
  readonly schema?: MessageValue
  readonly schemas?: readonly MessageValue[]
}
