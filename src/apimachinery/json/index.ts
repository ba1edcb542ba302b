export * from './json-equal.ts'
export * from './parse-json.ts'
export * from './parse-text.ts'
export * from './number-literal.ts'
