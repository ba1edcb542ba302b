export * from './audit-delivered.ts'
export * from './authentication-valid.ts'
export * from './condition-reports.ts'
