/** The languages that templates may have, by the platform's own codes. */
export const languages = new Set(
  `
  af ar ar_AE ar_EG ar_LB ar_MA ar_QA az be_BY bg bn bn_IN ca cs da de de_AT de_CH el en en_AE en_AU en_CA en_GB
  en_GH en_IE en_IN en_JM en_MY en_NZ en_QA en_SG en_UG en_US en_ZA es es_AR es_CL es_CO es_CR es_DO es_EC es_ES
  es_HN es_MX es_PA es_PE es_UY et fa fi fil fr fr_BE fr_CA fr_CH fr_CI fr_MA ga gu ha he hi hr hu id it ja ka
  kk kn ko ky_KG lo lt lv mk ml mr ms nb nl nl_BE pa pl prs_AF ps_AF pt_BR pt_PT ro ru rw_RW si_LK sk sl sq sr
  sv sw ta te th tr uk ur uz vi zh_CN zh_HK zh_TW zu
  `
    .trim()
    .split(/\s+/),
)
