-- Why a call was refused: the code of its failure, and the field, if one was to blame.
alter table api_log add column problem text;
