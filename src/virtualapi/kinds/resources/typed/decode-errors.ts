// The errors of decoding an object, with Go's messages.
import { badRequest, StatusError } from '#apimachinery/status/index.ts'

/** A value that Go cannot decode. */
export class DecodeError extends Error {
  /**
   * True: the value is of another JSON type. False: the JSON type is right, but the field does not accept the value.
   */
  readonly isWrongType: boolean

  constructor(message: string, { isWrongType = false } = {}) {
    super(message)
    this.isWrongType = isWrongType
  }
}

/** The fault of a body: a value of the wrong type, a field that strict validation refuses, or another one. */
export type BodyFault = 'type' | 'field' | 'other'

/** 400: the body is no object of the endpoint's kind. */
export class UndecodableError extends StatusError {
  readonly fault: BodyFault
  /** The message without the kinds of the body and of the endpoint. */
  readonly why: string

  /** `given`: kind and version of the body, as text. `expected`: the kind of the endpoint. */
  constructor(fault: BodyFault, why: string, { given, expected }: { given: string; expected: string }) {
    super(badRequest(`${given} cannot be handled as a ${expected}: ${why}`).status)
    this.fault = fault
    this.why = why
  }
}
