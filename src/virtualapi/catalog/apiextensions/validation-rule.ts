// One entry of x-kubernetes-validations in a schema.
import { fieldOf, isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

export interface ValidationRule {
  readonly rule: string
  readonly message: string
  readonly messageExpression: string
  readonly reason: string | undefined
  readonly fieldPath: string
  readonly optionalOldSelf: boolean | undefined
}

/** Reads an entry. Members of a wrong type count as absent. */
export function validationRule(value: JsonValue): ValidationRule {
  const member = (name: string): JsonValue | undefined => (isJsonObject(value) ? fieldOf(value, name) : undefined)
  const text = (name: string): string => {
    const found = member(name)
    return typeof found === 'string' ? found : ''
  }
  const [reason, optional] = [member('reason'), member('optionalOldSelf')]
  return {
    rule: text('rule'),
    message: text('message'),
    messageExpression: text('messageExpression'),
    reason: typeof reason === 'string' ? reason : undefined,
    fieldPath: text('fieldPath'),
    optionalOldSelf: typeof optional === 'boolean' ? optional : undefined,
  }
}

/** The name of a rule in messages: its own message, or else its text. */
export function ruleName({ rule, message }: ValidationRule): string {
  return (message === '' ? rule : message).trim()
}
