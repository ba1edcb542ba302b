export * from './parse-json.ts'
