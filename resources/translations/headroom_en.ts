<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>Headroom</name>
    <message numerus="yes">
        <source>%n layer(s)</source>
        <translation>
            <numerusform>%n layer</numerusform>
            <numerusform>%n layers</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n head(s)</source>
        <translation>
            <numerusform>%n head</numerusform>
            <numerusform>%n heads</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n request(s) at once</source>
        <translation>
            <numerusform>%n request at once</numerusform>
            <numerusform>%n requests at once</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::CalibrationDialog</name>
    <message numerus="yes">
        <source>%n problem(s) in the log…</source>
        <translation>
            <numerusform>%n problem in the log…</numerusform>
            <numerusform>%n problems in the log…</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::CatalogDialog</name>
    <message numerus="yes">
        <source>%n model(s)</source>
        <translation>
            <numerusform>%n model</numerusform>
            <numerusform>%n models</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChatModel</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::DetailsPanel</name>
    <message numerus="yes">
        <source>Decode, %n request(s)</source>
        <translation>
            <numerusform>Decode, %n request</numerusform>
            <numerusform>Decode, %n requests</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::DiagnosisDialog</name>
    <message numerus="yes">
        <source>%1, %n line(s)</source>
        <translation>
            <numerusform>%1, %n line</numerusform>
            <numerusform>%1, %n lines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1, a log of %2, %n line(s)</source>
        <translation>
            <numerusform>%1, a log of %2, %n line</numerusform>
            <numerusform>%1, a log of %2, %n lines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::EngineSession</name>
    <message numerus="yes">
        <source>nothing came from it for %n second(s). Wait, or stop it.</source>
        <translation>
            <numerusform>nothing came from it for %n second. Wait, or stop it.</numerusform>
            <numerusform>nothing came from it for %n seconds. Wait, or stop it.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::LayoutGridModel</name>
    <message numerus="yes">
        <source>%1 needs %n GPU(s); %2 are there</source>
        <translation>
            <numerusform>%1 needs %n GPU; %2 are there</numerusform>
            <numerusform>%1 needs %n GPUs; %2 are there</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Each layer divided over %n GPU(s)</source>
        <translation>
            <numerusform>Each layer on %n GPU</numerusform>
            <numerusform>Each layer divided over %n GPUs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Layers divided into %n stage(s)</source>
        <translation>
            <numerusform>All layers in %n stage</numerusform>
            <numerusform>Layers divided into %n stages</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::LogPage</name>
    <message numerus="yes">
        <source>%1 of %n line(s) shown</source>
        <translation>
            <numerusform>%1 of %n line shown</numerusform>
            <numerusform>%1 of %n lines shown</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1; %n older line(s) dropped</source>
        <translation>
            <numerusform>%1; %n older line dropped</numerusform>
            <numerusform>%1; %n older lines dropped</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::MachineBar</name>
    <message numerus="yes">
        <source>%n node(s)</source>
        <translation>
            <numerusform>%n node</numerusform>
            <numerusform>%n nodes</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::MonitorPage</name>
    <message numerus="yes">
        <source>%n minute(s)</source>
        <translation>
            <numerusform>%n minute</numerusform>
            <numerusform>%n minutes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 · %n rank(s)</source>
        <translation>
            <numerusform>%1 · %n rank</numerusform>
            <numerusform>%1 · %n ranks</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::PlanPage</name>
    <message numerus="yes">
        <source>%1: memory of the fullest GPU when each of %n request(s) has grown to a length.</source>
        <translation>
            <numerusform>%1: memory of the fullest GPU when each of %n request has grown to a length.</numerusform>
            <numerusform>%1: memory of the fullest GPU when each of %n requests has grown to a length.</numerusform>
        </translation>
    </message>
</context>
</TS>
